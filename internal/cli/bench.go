package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/cli/bench"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	scenarios string
	cfg       bench.Config
	quiet     bool
	hold      string // be the child process of recover, with this queue
}

func (p *Program) benchCommand() *cobra.Command {
	var b benchFlags
	cmd := &cobra.Command{
		Use:   "bench --store URL --scenario NAME[,NAME…]",
		Short: "Measure a store",
		Long: `Bench measures a store. Each scenario uses messages of its own:

  push        single calls, due over the next 48 hours
  push-raw    the same to a server without tarry's client: one message a request
  push-batch  the same, many messages a call
  cancel      single calls, by key
  lateness    messages due at a steady rate, to the start of an empty handler
  burst       messages due in the same instant, to the last ack
  pending     memory and disk space of waiting messages
  recover     from a kill -9 of the process with the store until the store serves again
  all         all of these

push, push-raw, push-batch and cancel are closed loop: each client calls again once it
has its answer, so latencies are service times at saturation. lateness, burst and
--background-rate are open loop: latencies count from the intended time.

The directory of a disk store must be missing or empty; it is removed afterwards
unless --keep is given. In any other store bench uses queues of its own and empties
them. A token for bench needs the scopes push, work, read and operate. Bodies are
hexadecimal digits, which compress to half.`,
		Example: `  tarry bench --store disk:bench-data --scenario push,lateness
  tarry bench --store http://127.0.0.1:8277 --scenario push --n 50000 --json
  tarry bench --store 'https://tarry.example.com?ca_file=ca.pem' --token-file token --scenario push-raw`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.bench(cmd, &b) },
	}
	f := cmd.Flags()
	storeFlag(cmd, &b.cfg.Store, "", "the store to measure, such as disk:DIR or http://HOST:PORT")
	p.tokenFlag(cmd)
	f.StringVar(&b.scenarios, "scenario", "push", "what to measure: scenarios with commas between, or all")
	f.IntVar(&b.cfg.N, "n", 0, "messages (default: as suits the scenario, 100,000 to a million)")
	f.IntVar(&b.cfg.Clients, "clients", 64, "concurrent callers and handlers")
	f.IntVar(&b.cfg.Batch, "batch", 100, "messages a call in push-batch, and where messages are pushed beforehand")
	f.IntVar(&b.cfg.Body, "body", 200, "bytes of a body")
	f.IntVar(&b.cfg.Rate, "rate", 5000, "lateness: messages due each second")
	f.IntVar(&b.cfg.BackgroundPending, "background-pending", 0, "far-away messages that are in the queue beforehand")
	f.IntVar(&b.cfg.BackgroundRate, "background-rate", 0, "lateness, burst: pushes a second going on meanwhile")
	f.BoolVar(&b.cfg.Keep, "keep", false, "keep the store; it may hold something beforehand")
	p.jsonFlag(cmd, "print JSON, one object a scenario")
	f.BoolVar(&b.quiet, "quiet", false, "show no progress on standard error")
	f.StringVar(&b.hold, "hold", "", "")
	f.Lookup("hold").Hidden = true
	return cmd
}

// check refuses flags that cannot work, before anything is touched.
func (b *benchFlags) check() (scenarios []string, err error) {
	if b.cfg.Store == "" {
		return nil, usagef("as in --store disk:bench-data", "--store is missing")
	}
	if b.scenarios == "all" {
		scenarios = slices.Clone(bench.Scenarios)
	} else {
		for s := range strings.SplitSeq(b.scenarios, ",") {
			s = strings.TrimSpace(s)
			if !slices.Contains(bench.Scenarios, s) {
				return nil, usagef("it is "+strings.Join(bench.Scenarios, ", ")+" or all", "unknown scenario %q", s)
			}
			scenarios = append(scenarios, s)
		}
	}
	for _, n := range []struct {
		flag              string
		value, least, top int
	}{
		{"n", b.cfg.N, 0, 1 << 40},
		{"clients", b.cfg.Clients, 1, 100_000},
		{"batch", b.cfg.Batch, 1, tarry.MaxBatch},
		{"body", b.cfg.Body, 0, tarry.DefaultMaxBody},
		{"rate", b.cfg.Rate, 1, 1_000_000},
		{"background-pending", b.cfg.BackgroundPending, 0, 1 << 40},
		{"background-rate", b.cfg.BackgroundRate, 0, 1_000_000},
	} {
		if n.value < n.least || n.value > n.top {
			return nil, usagef(fmt.Sprintf("allowed are %d to %d", n.least, n.top), "--%s is %d", n.flag, n.value)
		}
	}
	return scenarios, nil
}

func (p *Program) bench(cmd *cobra.Command, b *benchFlags) error {
	scenarios, err := b.check()
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("n") && b.cfg.N == 0 {
		return usagef("it is how many messages to measure", "--n is 0")
	}
	if u, err := url.Parse(b.cfg.Store); err == nil && isServer(u) {
		if b.cfg.Store, err = p.withToken(u); err != nil {
			return err
		}
	}
	b.cfg.Dir, _ = diskDir(b.cfg.Store)
	b.cfg.Open = openStore
	b.cfg.Hold = func(ctx context.Context, queue string, n int) *exec.Cmd {
		return p.hold(ctx, &b.cfg, queue, n, b.quiet)
	}
	b.cfg.Progress = func(line string) {
		if !b.quiet {
			fmt.Fprintln(p.Stderr, line)
		}
	}
	if b.hold != "" {
		return bench.Hold(cmd.Context(), b.cfg, b.hold, p.Stdout)
	}
	o := p.printer()
	var (
		headed bool
		notes  []string
		failed error
	)
	for _, s := range scenarios {
		b.cfg.Progress(s + ": begins")
		r, err := bench.Run(cmd.Context(), s, b.cfg)
		if (errors.Is(err, bench.ErrNoRecover) || errors.Is(err, bench.ErrNoRaw)) && len(scenarios) > 1 {
			notes = append(notes, s+" was left out: "+err.Error())
			continue
		}
		if err != nil {
			failed = benchError(s, err)
			break
		}
		if !headed {
			headed = true
			o.head("SCENARIO", "N", "CLIENTS", "BATCH", "BODY", "SECONDS", "OPS/S", "P50 MS", "P99 MS", "P99.9 MS", "MAX MS", "EARLY", "LOST", "DUP", "RSS", "DISK")
		}
		if err := showResult(o, r); err != nil {
			return err
		}
		notes = append(notes, resultNotes(r)...)
	}
	failed = cmp.Or(failed, o.flush())
	for _, n := range notes {
		fmt.Fprintln(p.Stderr, n)
	}
	return failed
}

func benchError(scenario string, err error) error {
	switch {
	case errors.Is(err, bench.ErrNotEmpty):
		return usagef("name a directory that does not exist yet; with --keep bench works beside what is there and removes nothing", "%v", err)
	case errors.Is(err, bench.ErrNoRecover), errors.Is(err, bench.ErrNoRaw):
		return usagef("", "%v", err)
	}
	return fmt.Errorf("bench %s: %w", scenario, err)
}

func showResult(o *printer, r bench.Result) error {
	o.row(r, r.Scenario, r.N, r.Clients, r.Batch, r.BodyBytes,
		number(r.Seconds), number(r.OpsPerS), number(r.P50), number(r.P99), number(r.P999), number(r.Max),
		r.Early, r.Lost, r.Dups, size(r.RSS), size(r.Disk))
	return o.pageSoon()
}

// resultNotes returns the results for which the table has no columns.
func resultNotes(r bench.Result) (notes []string) {
	note := func(format string, args ...any) {
		notes = append(notes, r.Scenario+": "+fmt.Sprintf(format, args...))
	}
	if r.Scenario == "pending" {
		note("%.1f bytes of memory and %.1f bytes of disk a message", r.RSSPerMessage, r.DiskPerMessage)
	}
	if r.Verified != "" {
		note("verified by %s (%d looked up, %d counted)", r.Verified, r.Checked, r.Counted)
	}
	if r.BackgroundPushes > 0 {
		note("%.0f background pushes a second meanwhile, p99 %.3f ms, p99.9 %.3f ms", r.BackgroundPushes, r.BackgroundP99, r.BackgroundP999)
	}
	if r.Note != "" {
		note("%s", r.Note)
	}
	return notes
}

func number(f float64) string {
	switch {
	case f == 0:
		return "-"
	case f >= 1000:
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'f', 3, 64)
}

func size(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// hold returns the child process that holds the messages of the scenario recover.
func (p *Program) hold(ctx context.Context, cfg *bench.Config, queue string, n int, quiet bool) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Self, "bench", "--hold", queue,
		"--n", strconv.Itoa(n), "--clients", strconv.Itoa(cfg.Clients), "--body", strconv.Itoa(cfg.Body),
		"--quiet="+strconv.FormatBool(quiet))
	// The URL may hold a password, which other users could read on a command line. With a file
	// as well, the store would be given twice.
	cmd.Env = slices.DeleteFunc(slices.Clone(p.Env), func(v string) bool { return strings.HasPrefix(v, "TARRY_STORE_FILE=") })
	cmd.Env = append(cmd.Env, "TARRY_STORE="+cfg.Store)
	cmd.Stderr = p.Stderr
	return cmd
}
