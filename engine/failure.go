package engine

import "time"

// MaxFailures is how many failures of a message are kept, the newest ones.
const MaxFailures = 5

// Failure is a failed attempt of a message: a retry, a bury or a lapse.
type Failure struct {
	At      time.Time // of a lapse: the deadline
	Attempt uint32
	Worker  string // Want.Worker of the lease
	Reason  string // Lapsed, or the reason of the settlement
}

// AddFailure returns the failures with one more, without the oldest if there would be too
// many. It may change the slice given.
func AddFailure(all []Failure, f Failure) []Failure {
	if len(all) >= MaxFailures {
		n := copy(all, all[len(all)-MaxFailures+1:])
		all = all[:n]
	}
	return append(all, f)
}
