package scenario

import (
	"runtime"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	stat := "4711 (a) (b c)) S 42 4711 4711 0 -1 4194560 1 2 3 4 100 20 3000 7 20 0 1 0 99 0 0\n"
	if p, want := parse([]byte(stat)), (process{id: 4711, parent: 42, ticks: 3127}); p != want {
		t.Errorf("it is %+v, not %+v", p, want)
	}
}

func TestCPU(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it is known on Linux alone")
	}
	before := CPU()
	for began := CPU(); CPU()-began < 5*time.Millisecond; { // uses what it waits for
	}
	if used := CPU() - before; used < 5*time.Millisecond || used > time.Minute {
		t.Errorf("it has used %v", used)
	}
}
