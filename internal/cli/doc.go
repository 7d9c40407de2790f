// Package cli is the command line of tarry: each command is in a file of its name.
package cli
