// Package codec encodes the stored parts of messages: contents, policies, settings, and the
// numbers and texts around them. docs/formats describes each form byte by byte. An empty
// value is decoded as nil.
package codec
