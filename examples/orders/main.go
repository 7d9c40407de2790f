package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tarryhq/tarry"
)

// The exit codes, as of the command tarry.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnavailable = 5
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := (&program{stdout: os.Stdout, stderr: os.Stderr}).run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// A program is one run of the command.
type program struct {
	stdout, stderr io.Writer
	after          func(step string) error // see replay
}

const usage = `Replays a file of orders in virtual time, on the disk or in a database.

  orders --file FILE [--store DIR] [--messages URL] [--json]

  --file FILE       CSV with a header line; its columns order_id, purchased_at,
                    approved_at, review_asked_at and review_answered_at are read
  --store DIR       where messages and progress are kept: a replay that was
                    stopped goes on from there (default: a temporary directory)
  --messages URL    the messages are kept in this database instead, where nobody
                    else uses tarry's tables: postgres://user@host/database or
                    mysql://user@host:3306/database
  --json            print one JSON object
`

// run returns the exit code.
func (p *program) run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("orders", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	file := flags.String("file", "", "")
	dir := flags.String("store", "", "")
	messages := flags.String("messages", "", "")
	asJSON := flags.Bool("json", false, "")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(p.stdout, usage)
		return 0
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("%q is not a flag; orders --help shows them", flags.Arg(0))
	case err == nil && *file == "":
		err = errors.New("name the file of orders with --file; orders --help shows the flags")
	}
	if err != nil {
		return p.fail(exitUsage, err)
	}
	in, err := readFile(*file)
	if err != nil {
		return p.fail(exitUsage, err)
	}
	start := time.Now()
	ended, err := p.replay(ctx, in, *dir, *messages)
	if err != nil {
		return p.fail(exitCode(err), explain(ctx, err, *dir))
	}
	rep := ended.report(len(in.orders), time.Since(start))
	if *asJSON {
		err = json.NewEncoder(p.stdout).Encode(rep)
	} else {
		err = rep.table(p.stdout)
	}
	if err != nil {
		return p.fail(exitFailed, err)
	}
	return 0
}

// replay opens the store, or a temporary one, and replays the file on it.
func (p *program) replay(ctx context.Context, in *input, dir, messagesURL string) (ended *outcomes, err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "tarry-orders-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
	}
	s, err := openStore(ctx, dir, messagesURL, in)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r, err := newReplay(s.client, s.clock, s.journal, in.orders, s.records)
	if err != nil {
		return nil, err
	}
	r.after = p.after
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	return &r.ended, nil
}

// explain says what to do about an interruption.
func explain(ctx context.Context, err error, dir string) error {
	switch {
	case ctx.Err() == nil:
		return err
	case dir == "":
		return errors.New("interrupted; with --store DIR the next run goes on where this one ended")
	}
	return fmt.Errorf("interrupted; run again with --store %s to go on from here", dir)
}

func exitCode(err error) int {
	switch {
	case errors.Is(err, errOtherFile), errors.Is(err, errNotOurs), errors.Is(err, errNoDatabase):
		return exitUsage
	case errors.Is(err, tarry.ErrUnavailable):
		return exitUnavailable
	}
	return exitFailed
}

// fail prints one line.
func (p *program) fail(code int, err error) int {
	fmt.Fprintln(p.stderr, "orders:", strings.ReplaceAll(err.Error(), "\n", "; "))
	return code
}
