// Package outage lets a database fail beneath engines, clients and workers, and sees what
// callers are told, that nothing answered is lost, and that all goes on by itself when the
// database does.
package outage
