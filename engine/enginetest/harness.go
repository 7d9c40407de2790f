package enginetest

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Harness is how the suite gets at an engine.
type Harness struct {
	// Open opens an engine that holds nothing yet in the suite's queues, whose
	// names are new on every run, so a shared store will do. The suite closes it;
	// what else is to be cleaned up belongs in t.Cleanup.
	Open func(t *testing.T) engine.Engine

	// Clock is the clock of every engine that Open returns, if it is an injected
	// one: the suite then moves it, and runs its tests one after another. Nil: the
	// engine has a clock of its own; the tests run in parallel and wait for short
	// spans of it, as its own grants show them.
	Clock *Clock

	// Reopen closes an engine and opens it again on the same data. Nil: the engine
	// keeps nothing beyond Close, and the tests of that are skipped.
	Reopen func(t *testing.T, e engine.Engine) engine.Engine

	// Faults are what can go wrong beneath an engine that Open returned; each is
	// let happen in random histories. None: those are skipped.
	Faults []Fault

	// Crash ends an engine as a loss of power does, between two calls, and opens it again
	// on what that left: what was answered must be there, but for leases of the process
	// itself. Nil: random histories have none.
	Crash func(t *testing.T, e engine.Engine) engine.Engine

	// Lasting says whether leases given with Want.Remote outlasted the Crash or Fault behind
	// which an engine was opened. Otherwise, and if it is nil, they may as well never have been.
	Lasting func(e engine.Engine) bool

	// Chores are what random histories have the engine do, beside calls. None: nothing.
	Chores []Chore

	// Losses returns, for each instant since it was last asked at which the power might have
	// gone, what opens an engine on what that had left; it is asked between calls. Nil: random
	// histories look at none.
	Losses func(e engine.Engine) []func(t *testing.T) engine.Engine

	// Meanwhile carries do out, which is a chore, a purge or another call, as what says, and
	// calls fn where the engine holds no lock in the midst of it, from one goroutine at a time
	// and not once do has returned: that plays steps of a random history there. Of another call
	// it is where that reads before it decides. Nil: none are.
	Meanwhile func(e engine.Engine, what string, do func() error, fn func(where string)) error

	// Sound says what of all that an engine holds does not agree with the rest; it is asked
	// between the calls of random histories without faults. Nil: none is.
	Sound func(e engine.Engine) error

	// Seed, if not nil, is told the seed of each random history before Open, for a harness
	// that draws something itself. Open opens an engine that holds nothing at all then: queues
	// have the same names each time.
	Seed func(seed uint64)

	// Turn has an engine do what it is to do in the background, where it does nothing of that by
	// itself so that histories are the same each time; it is called between the steps of random
	// histories. Nil: that goes on by itself.
	Turn func(e engine.Engine)

	// Last tells what an engine of a random history that fails did last, for who has to find a fault.
	// Nil: nothing.
	Last func(e engine.Engine) string

	// Steps is how many steps a random history has; 0: 250. Keys is how many keys they
	// use; 0: 4. Queues is how many queues there are at most, of which each history draws two
	// or more; 0: 2.
	Steps, Keys, Queues int

	// Histories is how many random histories are run; 0: 20. With the environment
	// variable TARRY_TEST_THOROUGH=1 it is four times as many.
	Histories int

	// Parts names the parts of the suite that are run, as Run lists them: for a variant
	// of an engine that another variant shows the rest of. None: all. With
	// TARRY_TEST_THOROUGH=1 all are run, whatever is named here.
	Parts []string
}

// Chore is work that an engine does by itself now and then, and a random history at will.
type Chore struct {
	Name string
	Do   func(e engine.Engine) error // does it whole
}

// thorough says that all is to be run that is left out otherwise for its time.
func thorough() bool { return os.Getenv("TARRY_TEST_THOROUGH") != "" }

// test is one thing that must hold.
type test struct {
	name string
	run  func(b *bed)
}

// part is what must hold of one side of the contract.
type part struct {
	name  string
	tests []test
}

// Run runs the whole suite: this list is its table of contents, and the
// contract's. Each entry is a file of this package.
func Run(t *testing.T, h Harness) {
	parts := []part{
		{"Push", pushTests},
		{"Conflict", conflictTests},
		{"AtomicPush", atomicTests},
		{"LeaseOrder", orderTests},
		{"LeaseDue", dueTests},
		{"Lapse", lapseTests},
		{"Isolate", isolateTests},
		{"ClockStep", clockStepTests},
		{"Settle", settleTests},
		{"Cancel", cancelTests},
		{"Reschedule", rescheduleTests},
		{"IfState", ifStateTests},
		{"Get", getTests},
		{"Claim", claimTests},
		{"Expiry", expiryTests},
		{"Remember", rememberTests},
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

// RunFaults runs only what the harness's faults do to random histories, for an
// engine set up so that they happen often.
func RunFaults(t *testing.T, h Harness) {
	for _, c := range faultTests {
		t.Run(c.name, func(t *testing.T) { c.run(newBed(t, h)) })
	}
}

// long is a span that does not pass while a test runs.
const long = 12 * time.Hour
