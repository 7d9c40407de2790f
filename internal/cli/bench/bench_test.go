package bench

import (
	"bytes"
	"compress/flate"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestKeysNameTheirMessage(t *testing.T) {
	for _, i := range []int{0, 1, 999, 10_000_000} {
		if got := index(key(i)); got != i {
			t.Errorf("index(%q) = %d", key(i), got)
		}
	}
	for _, k := range []string{"", "order-", "order-x", "far-order-1", "probe"} {
		if got := index(k); got != -1 {
			t.Errorf("index(%q) = %d", k, got)
		}
	}
}

func TestBodiesCompressToAboutHalf(t *testing.T) {
	tr := &trial{Config: Config{Body: 200}}
	var all bytes.Buffer
	w, err := flate.NewWriter(&all, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	const n = 500
	for i := range n {
		b := tr.body(i)
		if len(b) != 200 || strings.Trim(string(b), hexDigits) != "" {
			t.Fatalf("body %d is %q", i, b)
		}
		if !bytes.Equal(b, tr.body(i)) {
			t.Fatalf("body %d differs from itself", i)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if r := float64(all.Len()) / (n * 200); r < 0.45 || r > 0.65 {
		t.Errorf("the bodies compress to %.2f of their size", r)
	}
}

func TestFarSpreadsOver48Hours(t *testing.T) {
	var late int
	for i := range 10_000 {
		d := far(i)
		if d < time.Minute || d > 48*time.Hour {
			t.Fatalf("far(%d) = %s", i, d)
		}
		if d > 24*time.Hour {
			late++
		}
	}
	if late < 4500 || late > 5500 {
		t.Errorf("%d of 10000 are in the second half", late)
	}
}

func TestCoprimeVisitsAll(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 10, 97, 360} {
		step, seen := coprime(n), make(map[int]bool)
		for i := range n {
			seen[i*step%n] = true
		}
		if len(seen) != n {
			t.Errorf("n %d, step %d: %d visited", n, step, len(seen))
		}
	}
}

func TestWaitHeld(t *testing.T) {
	if err := waitHeld(strings.NewReader("held\n")); err != nil {
		t.Error(err)
	}
	for _, s := range []string{"", "broken\n"} {
		if waitHeld(strings.NewReader(s)) == nil {
			t.Errorf("%q passes", s)
		}
	}
}

func TestRedactHidesPasswords(t *testing.T) {
	if got := redact("http://user:secret@host:1"); strings.Contains(got, "secret") {
		t.Error(got)
	}
}

func TestUnknownScenario(t *testing.T) {
	if _, err := Run(t.Context(), "race", Config{}); err == nil || errors.Is(err, ErrNotEmpty) {
		t.Error(err)
	}
}

// The memory of a server is found by the port that it listens on.
func TestMemoryOfAServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := "http://" + l.Addr().String()
	for store, known := range map[string]bool{"mem:": true, at: true, at + "1": false, "http://192.0.2.1:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port): false} {
		tr := &trial{Config: Config{Store: store}}
		if rss := tr.rss(); (rss > 1<<20) != known {
			t.Errorf("%s: %d bytes", store, rss)
		}
	}
}
