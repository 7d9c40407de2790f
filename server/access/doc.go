// Package access handles the rights on a server: tokens with scopes and queues, the file that
// stores them, the guard that checks them, and the audit log.
//
// A token is shown once, when it is made. The file holds only its SHA-256. A fast hash is
// enough, since 256 random bits cannot be guessed.
package access
