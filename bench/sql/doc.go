// Package sql measures tarry's engines on databases: the one on PostgreSQL beside River,
// the one on MariaDB beside the table that services poll, by the same work, in the same
// process, on the same private server. Servers keep what they answer, as they come.
package sql
