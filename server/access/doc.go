// Package access holds the rights on a server: tokens with scopes and queues, the file that
// stores them, the guard that checks them, and the audit log.
//
// A token is shown once, when it is made. The file holds its SHA-256: 256 random bits cannot
// be guessed from their hash, however fast the hash is.
package access
