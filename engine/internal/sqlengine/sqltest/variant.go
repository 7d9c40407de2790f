package sqltest

import "flag"

// Calls are the parts of the conformance suite that make each kind of call, or in which time
// passes: for a second variant of an engine whose first runs all. The rest is races, cut
// calls, many queues and refusals, which a clock does not change.
var Calls = []string{
	"Push", "AtomicPush", "ReplaceLeased", "LeaseOrder", "LeaseDue", "Lapse", "Settle", "Reprioritize", "Failures", "Workers", "Cancel", "IfState", "Get", "Peek", "Find", "Claim", "ClaimIf", "Expiry", "Remember",
	"Finished", "List", "Count", "Forecast", "Pause", "Purge", "Redrive", "Settings", "Defaults", "DeadKeep", "MaxPending", "InFlight", "Rate", "Watch", "Moment", "History",
}

// Parallel makes a test binary run more tests at once than there are processors, unless its
// command says how many: most of them wait for a server, or for time to pass. Call it in
// TestMain.
func Parallel() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" || f.Name == "test.fuzz" })
	if !given {
		_ = flag.Set("test.parallel", "4") // there is such a flag
	}
}
