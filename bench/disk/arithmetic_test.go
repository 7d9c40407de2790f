//go:build linux

package disk

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOrder(t *testing.T) {
	all := []string{"a", "b", "c"}
	for turn, want := range []string{"abc", "bca", "cab", "abc"} {
		if got := strings.Join(order(all, turn), ""); got != want {
			t.Errorf("in turn %d it is %s, not %s", turn, got, want)
		}
	}
	if !slices.Equal(all, []string{"a", "b", "c"}) {
		t.Errorf("what it was given is %v", all)
	}
}

func TestSums(t *testing.T) {
	var s sums
	s.add(1000, answer{Seconds: 1, CPU: 0.5, RSS: 7, Most: 9, Disk: 100}, 4000, true)
	s.add(1000, answer{Seconds: 4, CPU: 1.5, RSS: 6, Most: 9, Disk: 150}, 2000, true)
	if want := (sums{messages: 2000, seconds: 5, cpu: 2, slowest: 250, written: 6000, rss: 6, mostRSS: 9, disk: 150}); s != want {
		t.Errorf("they are %+v, not %+v", s, want)
	}
	s.add(1, answer{Seconds: 1e-6}, 0, false)
	if !s.unknown || s.slowest != 250 {
		t.Errorf("then %+v", s)
	}
}

// What is cancelled in a turn is another in each until all have been, and what is pushed
// anew has the due time it had.
func TestCommandsLeap(t *testing.T) {
	c := command{Among: 1000, Soonest: time.Unix(1e9, 0), Spread: hugeSpread}
	seen := newMarks(c.Among)
	for c.From = range c.Among {
		if !seen.set(c.message(0)) || c.message(c.Among) != c.message(0) {
			t.Fatalf("%d comes twice, or not again", c.message(0))
		}
	}
	if after := c.due(7).Sub(c.Soonest); after < 0 || after > c.Spread || c.due(7).Equal(c.due(8)) {
		t.Errorf("it is due after %v", after)
	}
	if c := (command{From: 5}); c.message(2) != 7 {
		t.Errorf("in order it is %d", c.message(2))
	}
}

func TestStatistics(t *testing.T) {
	for device, want := range map[uint64]string{
		0xfe00:          "/sys/dev/block/254:0/stat",
		0x10305:         "/sys/dev/block/259:5/stat",
		0x12300045:      "/sys/dev/block/0:74565/stat",
		0x1206789a345bc: "/sys/dev/block/74565:108567228/stat",
	} {
		if got := statistics(device); got != want {
			t.Errorf("%x: %s, not %s", device, got, want)
		}
	}
}

func TestKilobytes(t *testing.T) {
	status := []byte("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n")
	if now, most := kilobytes(status, "VmRSS:"), kilobytes(status, "VmHWM:"); now != 1<<20 || most != 2<<20 {
		t.Errorf("%d, %d", now, most)
	}
	if now, most := memory(t); now < 1<<20 || most < now {
		t.Errorf("this process has %d, and had %d", now, most)
	}
}

// What is written comes to be known, less what the file system has not been told to write.
func TestMeter(t *testing.T) {
	const size = 4 << 20
	dir := t.TempDir()
	m := meterOf(t, dir)
	must(t, os.WriteFile(filepath.Join(dir, "f"), make([]byte, size), 0o600))
	n, known := m.written(t)
	if !known {
		t.Skip("the temporary directory is on no device that tells")
	}
	if n < size {
		t.Errorf("%d bytes were written, of %d", n, size)
	}
	if n := sizeOf(dir); n < size || n > 2*size {
		t.Errorf("the directory takes %d bytes", n)
	}
}

// A store that is kept is taken for what it is.
func TestMade(t *testing.T) {
	dir := t.TempDir()
	want := made{dir: filepath.Join(dir, "store"), Store: "disk:DIR", Messages: 10, Keys: "order", Body: 200}
	if m, err := readMade(want); m != nil || err != nil {
		t.Errorf("of nothing: %v, %v", m, err)
	}
	must(t, os.Mkdir(want.dir, 0o700))
	if _, err := readMade(want); err == nil {
		t.Error("one is taken that was not made to its end")
	}
	whole := want
	whole.Soonest = time.Unix(1e9, 0).UTC()
	must(t, whole.write())
	if m, err := readMade(want); err != nil || *m != whole {
		t.Errorf("it is %v, %v", m, err)
	}
	for name, change := range map[string]func(*made){
		"store": func(m *made) { m.Store = "disk:DIR?memory=1GiB" }, "messages": func(m *made) { m.Messages++ },
		"keys": func(m *made) { m.Keys = "random" }, "body": func(m *made) { m.Body = 100 },
	} {
		other := want
		if change(&other); other == want {
			t.Fatal(name)
		}
		if _, err := readMade(other); err == nil {
			t.Errorf("one of another %s is taken", name)
		}
	}
	for range 2 {
		must(t, whole.forget())
	}
	if _, err := readMade(want); err == nil {
		t.Error("one is taken that was forgotten")
	}
}
