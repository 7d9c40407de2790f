// Package cli is tarry's command line. Each command is in a file with its name.
package cli
