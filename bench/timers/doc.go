// Package timers measures what others offer for timers in the way in which
// package timer measures itself, so that the results stand side by side.
package timers
