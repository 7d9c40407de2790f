package diskengine_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/enginetest"
)

// sums plays the histories of some seeds, and returns what was asked of the disk in each.
func sums(t *testing.T, seeds []int) (all []string) {
	for _, seed := range seeds {
		h, ms := simulation()
		h.Steps = 100
		t.Setenv("TARRY_TEST_SEED", fmt.Sprint(seed))
		enginetest.Simulate(t, h, 0)
		all = append(all, fmt.Sprint(seed, " ", ms.tape.Sum()))
	}
	return all
}

// TestHistoriesAreTheSameEachTime plays histories twice, with each of the faults, and once more in
// another process: the disk is asked for the same, byte by byte.
func TestHistoriesAreTheSameEachTime(t *testing.T) {
	seeds := []int{1, 2, 3, 4, 5, 6, 7, 8} // those of the first nine are exact
	const other = "TARRY_TEST_SUMS"
	if os.Getenv(other) != "" {
		fmt.Println(strings.Join(sums(t, seeds), "\n"))
		return
	}
	first := strings.Join(sums(t, seeds), "\n")
	if again := strings.Join(sums(t, seeds), "\n"); again != first {
		t.Errorf("played again:\n%s\nwant\n%s", again, first)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), other+"=1")
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), first) {
		t.Errorf("in another process: %v\n%s\nwant\n%s", err, out, first)
	}
}
