// Package sql compares tarry's database engines with others: on PostgreSQL with River, on
// MariaDB with a table that services poll. All do the same work in the same process on the
// same private server. Servers store durably what they acknowledge, as in their default
// configuration.
package sql
