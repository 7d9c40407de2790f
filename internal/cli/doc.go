// Package cli is tarry's command line. Commands that have much in common share a file.
package cli
