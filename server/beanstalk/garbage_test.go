package beanstalk

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// TestGarbage: clients that mix commands with garbage, and come and go as they like, spoil nothing
// for another, whose jobs come and go. It goes on for TARRY_GARBAGE.
func TestGarbage(t *testing.T) {
	t.Parallel()
	span, err := time.ParseDuration(cmp.Or(os.Getenv("TARRY_GARBAGE"), "2s"))
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	log := new(shared)
	f := serve(t, &Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
	end := time.Now().Add(span)
	var rounds [4]int
	var all sync.WaitGroup
	for i := range rounds {
		all.Go(func() {
			g := &garbage{f: f, t: t, r: rand.New(rand.NewPCG(seed, uint64(i)))}
			for ; time.Now().Before(end) && !t.Failed(); rounds[i]++ {
				g.round()
			}
		})
	}
	jobs := 0
	c := f.dial(t)
	c.wants("use its-own-tube", "USING")
	c.wants("watch its-own-tube", "WATCHING 2")
	c.wants("ignore default", "WATCHING 1")
	for r := rand.New(rand.NewPCG(seed, 99)); time.Now().Before(end) && !t.Failed(); jobs++ {
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		size := r.IntN(3000)
		id := c.put(r.IntN(5000), 0, 60, size)
		c.wants("reserve", fmt.Sprint("RESERVED ", id, " ", size))
		switch r.IntN(4) {
		case 0:
			c.wants("bury "+id+" 7", "BURIED")
			c.wants("kick 1", "KICKED 1")
			c.wants("reserve", fmt.Sprint("RESERVED ", id, " ", size))
		case 1:
			c.wants("release "+id+" 7 0", "RELEASED")
			c.wants("peek-ready", fmt.Sprint("FOUND ", id, " ", size))
			c.wants("reserve-job "+id, fmt.Sprint("RESERVED ", id, " ", size))
		case 2:
			c.wants("touch "+id, "TOUCHED")
		}
		c.wants("delete "+id, "DELETED")
		c.wants("reserve-with-timeout 0", "TIMED_OUT")
	}
	all.Wait()
	t.Logf("%d jobs beside %d rounds of garbage", jobs, rounds)
	for give := time.Now().Add(time.Minute); f.Counts().Connections > 1; time.Sleep(time.Millisecond) {
		if time.Now().After(give) {
			t.Fatalf("%d connections stay", f.Counts().Connections)
		}
	}
	f.holding(t, false)
	if text := log.String(); strings.Contains(text, "panicked") || strings.Contains(text, "failed") {
		t.Error(text)
	}
}

// garbage is a client that sends it.
type garbage struct {
	f *front
	t *testing.T
	r *rand.Rand
}

// round is a connection: it sends in pieces while it reads, and ends in one way or another.
func (g *garbage) round() {
	nc, err := net.Dial("tcp", g.f.at)
	if err != nil {
		g.t.Error(err)
		return
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(time.Second)) // it may wait for a job for ever
	var out []byte
	for range 1 + g.r.IntN(200) {
		command := g.command()
		out = append(out, command...)
		if string(command) == "reserve\r\n" {
			break // much behind it would not be read, and so keep the end of the connection from the server
		}
	}
	ends, reads := g.r.IntN(4), make(chan struct{})
	go func() {
		defer close(reads)
		if ends > 0 { // else it never reads
			_, _ = io.Copy(io.Discard, nc)
		}
	}()
	for len(out) > 0 {
		n := min(len(out), 1+g.r.IntN(3000))
		if _, err := nc.Write(out[:n]); err != nil {
			break // it was cut, or is full of what nobody reads
		}
		out = out[n:]
	}
	switch tcp := nc.(*net.TCPConn); ends {
	case 1:
		_ = tcp.SetLinger(0)
	case 2:
		_ = tcp.CloseWrite()
		<-reads
	}
	_ = nc.Close()
	<-reads
	for _, tube := range []string{defaultTube, "junk0", "junk1", "junk2"} {
		if _, err := g.f.c.Purge(g.t.Context(), tube, tarry.PurgeDead); err != nil {
			g.t.Error(err)
		}
	}
}

// command returns a command, most often a good one. None is of jobs with small ids, which others have.
func (g *garbage) command() []byte {
	n := g.r.IntN
	tube, id, size := fmt.Sprint("junk", n(3)), g.r.Uint64()|1<<62, []int{0, 1, 10, 1000, 5000, 65_535, 65_536, 1 << 20}[n(8)]
	if n(3) > 0 {
		size = n(100)
	}
	line := []string{
		fmt.Sprintf("put %d %d %d %d", n(1<<20), n(2), n(3), size), fmt.Sprintf("put %d 0 1 %d", n(9), size), "use " + tube, "watch " + tube, "ignore " + tube,
		"reserve-with-timeout 0", "reserve-with-timeout 5ms", "reserve", "kick 3", "peek-ready", "peek-delayed", "peek-buried", "stats", "list-tubes", "list-tubes-watched",
		"list-tube-used", "stats-tube " + tube, "pause-tube " + tube + " 5ms", fmt.Sprint("delete ", id), fmt.Sprintf("release %d 1 0", id), fmt.Sprintf("bury %d 1", id),
		fmt.Sprint("touch ", id), fmt.Sprint("kick-job ", id), fmt.Sprint("stats-job ", id), fmt.Sprint("reserve-job ", id), "auth x", "quit",
	}[n(27)]
	if line == "quit" && n(10) > 0 || line == "reserve" && n(5) > 0 {
		line = "stats"
	}
	text := []byte(line + "\r\n")
	if strings.HasPrefix(line, "put ") {
		text = append(append(text, bytes.Repeat([]byte{'x'}, size)...), "\r\n"...)
	}
	switch n(12) {
	case 0: // bytes are changed, but for those of an id
		for range 1 + n(3) {
			if i := n(len(text)); text[i] < '0' || text[i] > '9' {
				text[i] = byte(n(256))
			}
		}
	case 1:
		text = text[:n(len(text))]
	case 2:
		text = make([]byte, n(700))
		for i := range text {
			text[i] = byte(n(256))
		}
	case 3:
		text = bytes.Repeat([]byte{"x \r\n\x00"[n(5)]}, n(2000))
	}
	return text
}

// shared is a log that may be read while it is written.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
