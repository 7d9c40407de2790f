package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

const (
	defaultServer = "http://127.0.0.1:8277"
	defaultStore  = "disk:tarry-data"
)

// target is what a client command works on.
type target struct {
	server, serverFile string
	store, storeFile   string
	bearer             bearer
	timeout            time.Duration
	json               bool
}

// clientFlags gives a command the flags of all client commands.
func (t *target) clientFlags(cmd *cobra.Command) {
	t.connectFlags(cmd)
	f := cmd.Flags()
	t.timeout = 30 * time.Second
	f.Var((*durationValue)(&t.timeout), "timeout", "give up after this long; 0: never")
	f.BoolVar(&t.json, "json", false, "print JSON, one object a line")
	asSetting(cmd, "timeout", "json")
}

// connectFlags are those that say where the messages are.
func (t *target) connectFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.server, "server", defaultServer, "the server's URL, or HOST:PORT")
	f.StringVar(&t.serverFile, "server-file", "", "file that holds the server's URL")
	f.StringVar(&t.store, "store", "", "work on this store directly, such as disk:tarry-data")
	f.StringVar(&t.storeFile, "store-file", "", "file that holds the store's URL")
	t.bearer.add(cmd)
	asSetting(cmd, "server", "server-file", "store", "store-file")
}

// url is the engine to open. Of --server and --store the one given closer by
// counts; where both stand in the environment or the file it is the server, so
// that the settings of serve do not make its clients open its store.
func (t *target) url(s *settings) (string, error) {
	server, store := s.levels["server"], s.levels["store"]
	switch {
	case server == fromFlag && store == fromFlag:
		return "", usagef("give one of them", "both --server and --store are given")
	case store > server && t.store != "":
		return t.store, nil
	}
	raw := t.server
	if _, _, err := net.SplitHostPort(raw); err == nil && !strings.Contains(raw, "/") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || !isServer(u) {
		return "", usagef("as in "+defaultServer+" or 127.0.0.1:8277", "%s is not an http URL", s.where("server"))
	}
	if err := t.bearer.check(); err != nil {
		return "", err
	}
	return t.bearer.in(u), nil
}

// open returns a client of the target. It waits for the store no longer than the
// timeout; 0: as long as it takes.
func (t *target) open(ctx context.Context, s *settings) (*tarry.Client, error) {
	u, err := t.url(s)
	if err != nil {
		return nil, err
	}
	ctx, cancel := t.limit(ctx)
	defer cancel()
	c, err := openStore(ctx, u, nil)
	if errors.Is(err, context.DeadlineExceeded) {
		what := "the store"
		if u, perr := url.Parse(u); perr == nil && isServer(u) {
			what = "the server at " + u.Host
		}
		return nil, &engine.Error{Op: "open", Err: tarry.ErrUnavailable, Hint: fmt.Sprintf("%s did not answer within %s; --timeout allows more", what, t.timeout)}
	}
	return c, err
}

func (t *target) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, t.timeout)
}

// with runs one client command: it opens the target, calls f within the timeout
// and closes. What may rightly take long goes by cmd.Context instead.
func (p *Program) with(t *target, f clientCommand) func(*cobra.Command, []string) error {
	return t.opened(f, func(ctx context.Context) (*tarry.Client, error) { return t.open(ctx, &p.settings) })
}

// present is with for a command about what is in a store already.
func (p *Program) present(op string, t *target, f clientCommand) func(*cobra.Command, []string) error {
	return t.opened(f, func(ctx context.Context) (*tarry.Client, error) { return p.openPresent(ctx, t, op) })
}

// look is with for a command that changes nothing.
func (p *Program) look(t *target, f clientCommand) func(*cobra.Command, []string) error {
	return t.opened(f, func(ctx context.Context) (*tarry.Client, error) { return p.openToLook(ctx, t) })
}

// clientCommand is what a client command does once its target is open.
type clientCommand func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error

func (t *target) opened(f clientCommand, open func(context.Context) (*tarry.Client, error)) func(*cobra.Command, []string) error {
	return run(func(cmd *cobra.Command, args []string) error {
		c, err := open(cmd.Context())
		if err != nil {
			return err
		}
		ctx, cancel := t.limit(cmd.Context())
		defer cancel()
		err = f(ctx, c, cmd, args)
		if closeErr := c.Close(); err == nil {
			err = closeErr
		}
		return err
	})
}
