// Package codec encodes the stored parts of messages: contents, policies, settings, and the
// numbers and texts around them. docs/formats describes each form byte by byte. An empty
// value is decoded as nil.
//
// It also encodes what callers get and pass back: the tokens of leases (Token) and the cursors
// of lists (Place). Their text needs no escaping in a URL.
package codec
