// Package workertest tests engines under workers, in addition to the suite of package
// enginetest, which knows only the engine contract.
package workertest
