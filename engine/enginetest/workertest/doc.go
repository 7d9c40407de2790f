// Package workertest is what every engine is to stand up to under workers, beside the
// suite of package enginetest, which knows nothing above the seam.
package workertest
