// Package timers measures other timer libraries in the same way as package timer measures
// itself, so that results can be compared.
package timers
