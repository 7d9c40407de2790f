// Package sql compares tarry's PostgreSQL engine with River. Both do the same work in the same
// process on the same private server, which stores durably what it acknowledges, as in its
// default configuration.
package sql
