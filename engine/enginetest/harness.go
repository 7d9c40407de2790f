package enginetest

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Harness gives the suite access to an engine.
type Harness struct {
	// Open opens an engine whose suite queues are empty. Their names are new on every run,
	// so a shared store will do. The suite closes it; other cleanup belongs in t.Cleanup.
	Open func(t *testing.T) engine.Engine

	// Clock is the injected clock of all opened engines. The suite then moves it, and runs
	// its tests one after another. Nil: the engine has its own clock; the tests run in
	// parallel and wait for short times.
	Clock *Clock

	// Reopen closes an engine and opens it again on the same data. Nil: the engine stores
	// nothing beyond Close, and those tests are skipped.
	Reopen func(t *testing.T, e engine.Engine) engine.Engine

	// Faults are the failures that can happen below an opened engine. Each is injected into
	// random histories. None: those tests are skipped.
	Faults []Fault

	// Crash ends an engine between two calls as a power loss does, and reopens it. Answered
	// calls must have lasted, except for leases of the process itself. Nil: no crashes.
	Crash func(t *testing.T, e engine.Engine) engine.Engine

	// Lasting reports whether leases with Want.Remote outlasted the last Crash or Fault.
	// Otherwise, and if it is nil, they may never have happened.
	Lasting func(e engine.Engine) bool

	// Unlisted reports whether the last message that finished was not listed, for want of space.
	// Nil: it always is.
	Unlisted func(e engine.Engine) bool

	// By is the canceller whatever Ref.By says, for an engine behind a server. "": Ref.By.
	By string

	// Chores are background work that random histories trigger. None: nothing.
	Chores []Chore

	// Losses returns, for each instant since its last call at which the power might have
	// failed, a function that opens an engine on what was left. It is called between calls.
	// Nil: none are checked.
	Losses func(e engine.Engine) []func(t *testing.T) engine.Engine

	// Meanwhile runs do, which is a chore or the call named by what. Meanwhile it
	// calls fn, which plays steps of a random history. It does so at points where the engine
	// holds no lock, from one goroutine at a time, and not after do has returned. In calls,
	// these points are between reading and deciding. Nil: there are none.
	Meanwhile func(e engine.Engine, what string, do func() error, fn func(where string)) error

	// Sound returns an error if an engine's state is inconsistent. It is called between the
	// calls of histories without faults. Nil: no check.
	Sound func(e engine.Engine) error

	// Seed, if not nil, receives the seed of each random history before Open, for harnesses
	// with their own randomness. Open must then open a completely empty engine: queues have
	// the same names each time.
	Seed func(seed uint64)

	// Turn runs an engine's background work, for an engine without any of its own so that
	// histories are reproducible. It is called between steps. Nil: the engine does it
	// itself.
	Turn func(e engine.Engine)

	// Last describes the last actions of an engine whose history failed, for debugging. Nil:
	// nothing.
	Last func(e engine.Engine) string

	// Steps is the number of steps of a random history; 0: 250. Keys is the number of keys;
	// 0: 4. Queues is the most queues, of which each history uses two or more; 0: 2.
	Steps, Keys, Queues int

	// Histories is the number of random histories; 0: 20. With TARRY_TEST_THOROUGH=1 it is
	// four times as many, with -short half as many.
	Histories int

	// Parts names the parts of the suite to run, as Run lists them, for a variant whose
	// other parts are covered by another variant. None: all. With TARRY_TEST_THOROUGH=1 all
	// parts are run.
	Parts []string
}

// Chore is work that an engine does from time to time, and a random history on demand.
type Chore struct {
	Name string
	Do   func(e engine.Engine) error // does all of it
}

// thorough reports whether to run the tests that are otherwise left out to save time.
func thorough() bool { return os.Getenv("TARRY_TEST_THOROUGH") != "" }

// test is one thing that must hold.
type test struct {
	name string
	run  func(b *bed)
}

// part is a group of tests of one aspect of the contract.
type part struct {
	name  string
	tests []test
}

// Run runs the whole suite. This list is its table of contents, and the contract's; each
// entry is a file of this package.
func Run(t *testing.T, h Harness) {
	parts := []part{
		{"Push", pushTests},
		{"AtomicPush", atomicTests},
		{"ReplaceLeased", replaceLeasedTests},
		{"LeaseOrder", orderTests},
		{"LeaseDue", dueTests},
		{"Lapse", lapseTests},
		{"Isolate", isolateTests},
		{"ClockStep", clockStepTests},
		{"Settle", settleTests},
		{"Reprioritize", reprioritizeTests},
		{"Failures", failureTests},
		{"Workers", workerTests},
		{"Cancel", cancelTests},
		{"IfState", ifStateTests},
		{"Get", getTests},
		{"Claim", claimTests},
		{"ClaimIf", claimIfTests},
		{"Peek", peekTests},
		{"Find", findTests},
		{"Expiry", expiryTests},
		{"Remember", rememberTests},
		{"Finished", finishedTests},
		{"List", listTests},
		{"Range", rangeTests},
		{"Count", countTests},
		{"Forecast", forecastTests},
		{"Pause", pauseTests},
		{"Purge", purgeTests},
		{"Redrive", redriveTests},
		{"Settings", settingsTests},
		{"Defaults", defaultsTests},
		{"DeadKeep", deadKeepTests},
		{"MaxPending", maxPendingTests},
		{"InFlight", inFlightTests},
		{"Rate", rateTests},
		{"Watch", watchTests},
		{"Misuse", misuseTests},
		{"Refusals", refusalTests},
		{"Close", closeTests},
		{"Figures", figureTests},
		{"Reopen", reopenTests},
		{"Race", raceTests},
		{"RaceClaim", raceClaimTests},
		{"RaceLimits", raceLimitTests},
		{"Cut", cutTests},
		{"Moment", momentTests},
		{"Many", manyTests},
		{"History", historyTests},
		{"Fault", faultTests},
	}
	for _, name := range h.Parts {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			t.Fatalf("the suite has no part %q", name)
		}
	}
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			if len(h.Parts) > 0 && !slices.Contains(h.Parts, part.name) && !thorough() {
				t.Skip("run by another variant of this engine; by this one with TARRY_TEST_THOROUGH=1")
			}
			if h.Clock == nil {
				t.Parallel()
			}
			for _, c := range part.tests {
				t.Run(c.name, func(t *testing.T) {
					if h.Clock == nil {
						t.Parallel()
					}
					c.run(newBed(t, h))
				})
			}
		})
	}
}

// RunFaults runs only the random histories with faults, for an engine on which faults are
// frequent.
func RunFaults(t *testing.T, h Harness) {
	for _, c := range faultTests {
		t.Run(c.name, func(t *testing.T) { c.run(newBed(t, h)) })
	}
}

// long is a duration that does not pass while a test runs.
const long = 12 * time.Hour
