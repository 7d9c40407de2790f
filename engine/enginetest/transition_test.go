package enginetest

import (
	"slices"
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
	var shown []string
	for line := range strings.Lines(Markdown()) {
		ops := strings.Split(line, " |")[0]
		shown = append(shown, strings.Split(strings.TrimPrefix(ops, "| "), "; ")...)
	}
	if len(shown) != len(grid)+2 { // with the head
		t.Errorf("%d operations in Markdown, of %d", len(shown)-2, len(grid))
	}
	for _, row := range grid {
		if !slices.Contains(shown, string(row.op)) {
			t.Errorf("Markdown lacks %s", row.op)
		}
	}
}
