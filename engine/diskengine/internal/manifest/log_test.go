package manifest

import "testing"

// TestLogDirectory: a log in a directory of its own makes a manifest of a version of its own, and names
// of directories are those alone that LogName makes.
func TestLogDirectory(t *testing.T) {
	for _, n := range []uint64{0, 1, 0xabc, 1<<64 - 1} {
		if got, ok := ParseLogName(LogName(n)); got != n || !ok {
			t.Errorf("%d: %d, %v", n, got, ok)
		}
	}
	for _, name := range []string{"", "logs", "log-", "log-1", "log-000000000000000A", "log-0000000000000000", "0000000000000001"} {
		if n, ok := ParseLogName(name); ok {
			t.Errorf("%q is taken for %d", name, n)
		}
	}
	for n, want := range map[uint64]uint32{0: 1, 3: 2} {
		s := State{Store: 1, NextID: 1, NextQueue: 1, NextFile: 9, Log: n}
		b := s.encode()
		got, _, reason, newer := decode(b)
		if v := le.Uint32(b[8:]); v != want || reason != "" || newer || got.Log != n {
			t.Errorf("log %d: version %d, %q, %v", n, v, reason, got.Log)
		}
		le.PutUint32(b[8:], 3-want)
		le.PutUint32(b[12:], sum(b))
		if _, _, reason, _ := decode(b); reason == "" {
			t.Errorf("log %d is taken with version %d", n, 3-want)
		}
	}
	s := State{Store: 1, NextID: 1, NextQueue: 1, NextFile: 9, Log: 9}
	if s.check() == nil {
		t.Error("the number of a log that was never given")
	}
}
