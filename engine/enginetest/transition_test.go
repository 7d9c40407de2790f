package enginetest

import (
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine"
)

func TestTransitionTableIsWhole(t *testing.T) {
	seen := map[[2]string]bool{}
	for _, tr := range TransitionTable() {
		cell := [2]string{string(tr.State), string(tr.Op)}
		if seen[cell] {
			t.Errorf("%v stands twice", cell)
		}
		seen[cell] = true
		if tr.Err() != nil && (tr.Next != unchanged || tr.Attempt != same || tr.Fails) {
			t.Errorf("%v fails and changes something", cell)
		}
	}
	for c := engine.Reject; c <= engine.Rearm; c++ {
		transition(absent, pushOps[c])
	}
	for do := engine.Ack; do <= engine.Extend; do++ {
		transition(absent, settleOps[do])
	}
	if rows := strings.Count(Markdown(), "\n"); rows != len(grid)+2 {
		t.Errorf("%d lines of Markdown for %d operations", rows, len(grid))
	}
}
