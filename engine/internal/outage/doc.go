// Package outage makes a database fail beneath engines, clients and workers. It checks which
// errors callers get, that no answered call is lost, and that everything recovers by itself
// once the database does.
package outage
