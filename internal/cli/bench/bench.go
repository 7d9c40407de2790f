package bench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tarryhq/tarry"
)

// Config says what to measure.
type Config struct {
	Store   string // URL
	Dir     string // directory of a disk store; "": not a disk store
	N       int    // messages; 0: the scenario's default
	Clients int    // concurrent callers, and handlers of the worker
	Batch   int    // messages a call, for scenarios that push in batches
	Body    int    // bytes of a body
	Rate    int    // lateness: messages due each second

	BackgroundPending int // far-away messages already in the queue
	BackgroundRate    int // pushes a second of such messages during the run (lateness, burst)

	Keep bool // the store may hold messages, and is not removed

	// Open opens a store, with a Config of nil.
	Open func(ctx context.Context, store string, cfg *tarry.Config) (*tarry.Client, error)
	// Hold returns a command, not started, that calls the function Hold on the same store, with
	// its standard output.
	Hold func(ctx context.Context, queue string, n int) *exec.Cmd
	// Progress is called with the progress of a scenario.
	Progress func(line string)
}

// Scenarios are the names of all scenarios, in the order in which "all" runs them.
var Scenarios = []string{"push", "push-raw", "push-batch", "cancel", "lateness", "burst", "pending", "recover"}

// defaultN is the default number of messages by scenario.
var defaultN = map[string]int{
	"push": 200_000, "push-raw": 200_000, "push-batch": 1_000_000, "cancel": 200_000,
	"lateness": 100_000, "burst": 100_000, "pending": 1_000_000, "recover": 1_000_000,
}

// trial is one run of one scenario.
type trial struct {
	Config
	scenario string
	c        *tarry.Client
	queue    string
	result   Result
}

// Run runs one scenario in a queue of its own, or on a new disk store, and removes what it
// made. If ctx ends, Run ends early with an error.
func Run(ctx context.Context, scenario string, cfg Config) (Result, error) {
	if !slices.Contains(Scenarios, scenario) {
		return Result{}, fmt.Errorf("unknown scenario %q", scenario)
	}
	if scenario == "push-raw" { // checked before the store is touched
		if _, err := readRaw(cfg.Store); err != nil {
			return Result{}, err
		}
	}
	cfg.N = cmp.Or(cfg.N, defaultN[scenario])
	t := &trial{
		Config: cfg, scenario: scenario,
		// A queue of its own, so that a shared store may hold something already.
		queue: fmt.Sprintf("bench.%s.%08x", scenario, rand.Uint32()),
	}
	t.result = Result{
		Scenario: scenario, Store: redact(cfg.Store), N: cfg.N, Clients: cfg.Clients, Batch: 1, BodyBytes: cfg.Body,
		BackgroundPending: cfg.BackgroundPending,
	}
	tidy, err := t.prepare(ctx)
	if err != nil {
		return Result{}, err
	}
	err = t.run(ctx)
	return t.result, cmp.Or(err, tidy())
}

func (t *trial) run(ctx context.Context) error {
	run := map[string]func(context.Context) error{
		"push": t.push, "push-raw": t.pushRaw, "push-batch": t.pushBatch, "cancel": t.cancel,
		"lateness": t.lateness, "burst": t.burst, "pending": t.pending, "recover": t.recover,
	}[t.scenario]
	if t.scenario != "recover" {
		if err := t.pushBackground(ctx); err != nil {
			return err
		}
	}
	if err := run(ctx); err != nil {
		return err
	}
	t.result.RSS = cmp.Or(t.result.RSS, t.rss())
	t.result.Disk = cmp.Or(t.result.Disk, t.disk())
	return nil
}

// prepare opens a store and returns a function that closes it and removes what was made.
func (t *trial) prepare(ctx context.Context) (tidy func() error, err error) {
	remove := func() error { return nil }
	if t.Dir != "" {
		if remove, err = t.freshDir(); err != nil {
			return nil, err
		}
	}
	if t.c, err = t.Open(ctx, t.Store, nil); err != nil {
		_ = remove()
		return nil, err
	}
	return func() error {
		var err error
		if t.c != nil {
			if t.Dir == "" && !t.Keep {
				err = t.purge()
			}
			err = cmp.Or(err, t.c.Close())
		}
		return cmp.Or(err, remove())
	}, nil
}

// freshDir refuses a directory that is not empty, since a benchmark measures only its own
// messages and then removes the store.
func (t *trial) freshDir() (remove func() error, err error) {
	if t.Keep {
		return func() error { return nil }, nil
	}
	entries, err := os.ReadDir(t.Dir)
	existed := err == nil
	switch {
	case err != nil && !os.IsNotExist(err):
		return nil, err
	case len(entries) > 0:
		return nil, fmt.Errorf("%w: %s", ErrNotEmpty, t.Dir)
	}
	return func() error {
		if !existed {
			return os.RemoveAll(t.Dir)
		}
		entries, err := os.ReadDir(t.Dir)
		for _, e := range entries {
			err = cmp.Or(err, os.RemoveAll(filepath.Join(t.Dir, e.Name())))
		}
		return err
	}, nil
}

// purge removes what a scenario left in a shared store, if the store can purge. It works after
// an interrupt too.
func (t *trial) purge() error {
	if !t.c.Capabilities().Purge {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := t.c.Purge(ctx, t.queue, tarry.PurgeDead)
	return err
}

// key returns the name of the i-th message.
func key(i int) string { return "order-" + strconv.Itoa(i) }

// nameHeader is the header with a message's name if the engine has no keys.
const nameHeader = "name"

// named gives a message its name: as its key, or as a header if the engine has no keys.
func (t *trial) named(name string) tarry.PushOption {
	if t.c.Capabilities().Keys {
		return tarry.Key(name)
	}
	return tarry.Header(nameHeader, name)
}

// nameOf returns the name of a message.
func (t *trial) nameOf(m *tarry.Message[[]byte]) string {
	if m.Key != "" {
		return m.Key
	}
	return m.Header(nameHeader)
}

// index returns the i of key, or -1.
func index(key string) int {
	const prefix = len("order-")
	if len(key) <= prefix || key[:prefix] != "order-" {
		return -1
	}
	i, err := strconv.Atoi(key[prefix:])
	if err != nil {
		return -1
	}
	return i
}

const hexDigits = "0123456789abcdef"

// body returns the body of the i-th message.
func (t *trial) body(i int) []byte {
	b := make([]byte, t.Body)
	src := rand.NewPCG(uint64(i), 0x7461727279)
	for at := 0; at < len(b); {
		for v := src.Uint64(); at < len(b) && v != 0; at, v = at+1, v>>4 {
			b[at] = hexDigits[v&15]
		}
	}
	return b
}

// far returns in how long the i-th message is due, at random over 48 hours.
func far(i int) time.Duration {
	src := rand.NewPCG(uint64(i), 48)
	return time.Minute + time.Duration(src.Uint64()%uint64(48*time.Hour-time.Minute))
}
