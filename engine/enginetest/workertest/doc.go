// Package workertest tests engines under workers. The suite of package enginetest knows only
// the engine contract.
package workertest
