// Package access is who may do what on a server: tokens with scopes and queues, the
// file that holds them, and the guard that a server asks.
//
// A token is shown once, when it is made. The file holds its SHA-256, which is enough:
// what is 256 bits of chance cannot be guessed from its hash, however fast that is.
package access
