package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/tarrytest"
)

const smallFile = "testdata/orders.csv"

// want is what the small file comes to; there is a case of each kind in it.
var want = report{Orders: 13, OrdersCancelled: 4, CancelsCalledOff: 7, ReviewsAutomatic: 4, ReviewsGiven: 6}

// programEnv makes the test binary the program itself.
const programEnv = "TARRY_ORDERS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// counts runs the program and returns what it prints, but for the seconds.
func counts(t *testing.T, args ...string) (r report) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append(args, "--json"), &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	r.Seconds = 0
	return r
}

// plain counts line by line, without a queue and with nothing of the program.
func plain(t *testing.T, file string) (sum report) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	count := func(began, ended time.Time, delay int64, done, calledOff *int64) {
		switch {
		case began.IsZero():
		case ended.IsZero() || ended.UnixMilli()-began.UnixMilli() > delay:
			*done++
		default:
			*calledOff++
		}
	}
	for _, line := range lines[1:] {
		at := make(map[string]time.Time)
		for i, name := range lines[0] {
			at[name], _ = time.Parse(time.RFC3339, line[i]) // zero if it is no time
		}
		count(at["purchased_at"], at["approved_at"], 30*60*1000, &sum.OrdersCancelled, &sum.CancelsCalledOff)
		count(at["review_asked_at"], at["review_answered_at"], 48*60*60*1000, &sum.ReviewsAutomatic, &sum.ReviewsGiven)
		sum.Orders++
	}
	return sum
}

func TestReplay(t *testing.T) {
	if got := plain(t, smallFile); got != want {
		t.Errorf("line by line the small file comes to %+v, want %+v", got, want)
	}
	if got := counts(t, "--file", smallFile); got != want {
		t.Errorf("in memory: %+v, want %+v", got, want)
	}
	var ids [2]tarry.ID
	dir := t.TempDir()
	for i := range ids {
		if got := counts(t, "--file", smallFile, "--store", dir); got != want {
			t.Errorf("on disk, run %d: %+v, want %+v", i, got, want)
		}
		ids[i] = finished(t, dir)
	}
	if ids[0] != ids[1] {
		t.Errorf("what was finished by the first run was done again by the second")
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"--file", smallFile}, &stdout, &stderr)
	const table = "13 orders 4 cancelled, unpaid for 30 minutes 7 paid in time " +
		"4 rated five stars after 48 hours 6 rated by the customer in time 0."
	if got := strings.Join(strings.Fields(stdout.String()), " "); code != 0 || !strings.HasPrefix(got, table) {
		t.Errorf("exit code %d: %s%s", code, got, &stderr)
	}
}

// finished returns the id of the last message that a replay of the small file has finished.
func finished(t *testing.T, dir string) tarry.ID {
	t.Helper()
	c, err := tarry.Open(t.Context(), "disk:"+dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	info, err := newShop().unpaid.topic.Get(t.Context(), c, tarry.ByKey(`in the far "future"`))
	if err != nil || info.State != tarry.Finished {
		t.Fatal(info.State, err)
	}
	return info.ID
}

func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, []string{"--file", smallFile}, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

// TestMadeOrders replays thousands of orders, often with several events at one instant.
func TestMadeOrders(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	b.WriteString("order_id,purchased_at,approved_at,review_asked_at,review_answered_at\n")
	begin := time.Date(2018, 3, 1, 12, 0, 0, 0, time.UTC)
	cell := func(after time.Duration) {
		b.WriteByte(',')
		if rng.IntN(4) > 0 {
			b.WriteString(begin.Add(after).Format(time.RFC3339))
		}
	}
	for id := range 5000 {
		fmt.Fprint(&b, id)
		purchased := time.Duration(rng.IntN(60*24)) * time.Minute
		cell(purchased)
		cell(purchased + time.Duration(rng.IntN(64)-2)*time.Minute)
		asked := purchased + time.Duration(rng.IntN(96))*time.Hour
		cell(asked)
		cell(asked + time.Duration(rng.IntN(100)-2)*time.Hour)
		b.WriteByte('\n')
	}
	file := filepath.Join(t.TempDir(), "orders.csv")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	want := plain(t, file)
	if got := counts(t, "--file", file); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if want.OrdersCancelled == 0 || want.CancelsCalledOff == 0 || want.ReviewsAutomatic == 0 || want.ReviewsGiven == 0 {
		t.Errorf("the orders are too much alike: %+v", want)
	}
}

// TestWorker has the orders of the small file happen while a worker does what is due, as in
// production.
func TestWorker(t *testing.T) {
	s := newShop()
	events, orders, err := s.read(smallFile)
	if err != nil {
		t.Fatal(err)
	}
	const before = -time.Millisecond // before what is due at an instant
	q := tarrytest.NewAt(t, events[0].at.Add(before))
	w := tarry.NewWorker(q.Client, nil)
	tarry.Handle(w, s.unpaid.topic, s.unpaid.do)
	tarry.Handle(w, s.review.topic, s.review.do)
	q.Start(t.Context(), w)
	for _, e := range events {
		q.AdvanceTo(e.at.Add(before))
		if e.kind == due {
			continue // that is the worker's
		}
		if err := e.apply(t.Context(), q.Client); err != nil {
			t.Error(err)
		}
	}
	q.Advance(-before)
	if got := s.report(orders); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestKill9 kills the program at any moment, and again after it has continued.
func TestKill9(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	start := time.Now()
	counts(t, "--file", smallFile, "--store", t.TempDir())
	took := time.Since(start)
	for range 5 {
		args := []string{"--file", smallFile, "--store", t.TempDir()}
		for range 3 {
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), programEnv+"=1")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rng.Int64N(int64(took))))
			_ = cmd.Process.Kill()
			t.Log(cmd.Wait()) // nil: it had come to its end
		}
		if got := counts(t, args...); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestWrongInput(t *testing.T) {
	const header = "order_id,purchased_at,approved_at,review_asked_at,review_answered_at\n"
	store, file := t.TempDir(), filepath.Join(t.TempDir(), "orders.csv")
	counts(t, "--file", smallFile, "--store", store)
	for content, why := range map[string]string{
		"":                                     "the first line must name the columns",
		"order_id,purchased_at,approved_at\n":  "the column review_asked_at is missing",
		header + "a,,,,\nb,yesterday,,,\n":     `line 3: purchased_at: "yesterday" is not a time`,
		header + "a,9999-12-31T23:59:59Z,,,\n": "line 2: purchased_at: ",
		header + "a,,,,\na,,,,\n":              `line 3: the order_id "a" is empty, or another line has it`,
		header + "a,,,\n":                      "record on line 2: wrong number of fields",
		header + strings.Repeat("x", 513) + ",2018-03-01T12:00:00Z,,,\n": "key",
		header + `"in the far ""future""",2018-03-01T12:00:00Z,,,`:       "another file",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		fails(t, why, "--file", file, "--store", store)
	}
	fails(t, "--file")
	fails(t, "no such file", "--file", file+"-none")
	fails(t, "-colour", "--file", smallFile, "--colour")
	fails(t, "no other arguments", "--file", smallFile, "extra")
}

// fails runs the program, which must find fault with how it is used.
func fails(t *testing.T, why string, args ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), args, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), why) || stdout.Len() > 0 {
		t.Errorf("%v: exit code %d, %q, %q; want 2 and %q", args, code, &stdout, &stderr, why)
	}
}
