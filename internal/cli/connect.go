package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	server, store, token string
	timeout              time.Duration // 0: none
}

// clientCommand is what a client command does once its target is open.
type clientCommand func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error

// client makes cmd a client command: it gets their flags, opens the target, calls f within the
// timeout and closes. What may rightly take long goes by cmd.Context instead.
func (p *Program) client(do whenMissing, cmd *cobra.Command, f clientCommand) *cobra.Command {
	p.connectFlags(cmd)
	timeoutFlag(cmd, &p.target.timeout, defaultTimeout, "give up after this long; 0: never")
	p.jsonFlag(cmd, "print JSON, one object a line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := p.open(cmd, do)
		if err != nil {
			return err
		}
		ctx, cancel := withTimeout(cmd.Context(), p.target.timeout)
		defer cancel()
		return closing(c, f(ctx, c, cmd, args))
	}
	return cmd
}

// closing closes c after work that ended with err.
func closing(c *tarry.Client, err error) error {
	if closeErr := c.Close(); err == nil {
		return closeErr
	}
	return err
}

// connectFlags are those that say where the messages are.
func (p *Program) connectFlags(cmd *cobra.Command) {
	p.target.timeout = defaultTimeout
	cmd.Flags().StringVar(&p.target.server, "server", defaultServer, "the server's URL, or HOST:PORT")
	cmd.Flags().String("server-file", "", "file that holds the server's URL")
	storeFlag(cmd, &p.target.store, "", "work on this store directly, such as disk:tarry-data")
	p.tokenFlag(cmd)
}

// storeFlag gives a command the flags --store and --store-file.
func storeFlag(cmd *cobra.Command, store *string, otherwise, usage string) {
	cmd.Flags().StringVar(store, "store", otherwise, usage)
	cmd.Flags().String("store-file", "", "file that holds the store's URL")
}

const defaultTimeout = 30 * time.Second

func timeoutFlag(cmd *cobra.Command, timeout *time.Duration, otherwise time.Duration, usage string) {
	*timeout = otherwise
	cmd.Flags().Var((*durationValue)(timeout), "timeout", usage)
}

// withTimeout is context.WithTimeout, but that 0 is none.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// url is the engine to open. Of --server and --store the one given closer by
// counts; where both stand in the environment or the file it is the server, so
// that the settings of serve do not make its clients open its store.
func (p *Program) url() (string, error) {
	server, store := p.settings.levels["server"], p.settings.levels["store"]
	switch {
	case server == fromFlag && store == fromFlag:
		return "", usagef("give one of them", "both --server and --store are given")
	case store > server && p.target.store != "":
		return p.target.store, nil
	}
	raw := p.target.server
	if _, _, err := net.SplitHostPort(raw); err == nil && !strings.Contains(raw, "/") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || !isServer(u) {
		return "", usagef("as in "+defaultServer+" or 127.0.0.1:8277", "%s is not an http URL", p.settings.where("server"))
	}
	return p.withToken(u)
}

// open opens the target. It waits for no longer than the timeout; 0: as long as it takes.
func (p *Program) open(cmd *cobra.Command, do whenMissing) (*tarry.Client, error) {
	raw, err := p.url()
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err == nil { // else openStore says what is wrong
		if c, err := p.openMissing(cmd.Name(), u, do); c != nil || err != nil {
			return c, err
		}
	}
	ctx, cancel := withTimeout(cmd.Context(), p.target.timeout)
	defer cancel()
	c, err := openStore(ctx, raw, nil)
	if errors.Is(err, context.DeadlineExceeded) {
		what := "the store"
		if u != nil && isServer(u) {
			what = "the server at " + u.Host
		}
		return nil, &engine.Error{Op: "open", Err: tarry.ErrUnavailable, Hint: fmt.Sprintf("%s did not answer within %s; --timeout allows more", what, p.target.timeout)}
	}
	return c, err
}

// openStore opens a store. That a local one cannot be opened is a failure of this
// call, not of a server somewhere. Without cfg nothing is logged: commands print
// what went wrong.
func openStore(ctx context.Context, store string, cfg *tarry.Config) (*tarry.Client, error) {
	if cfg == nil {
		cfg = &tarry.Config{Logger: slog.New(slog.DiscardHandler)}
	}
	c, err := tarry.Open(ctx, store, cfg)
	if !errors.Is(err, tarry.ErrUnavailable) {
		return c, err
	}
	if _, local := diskDir(store); local {
		return nil, failed(err)
	}
	return nil, startHint(err)
}

// startHint adds to the error of a server that does not answer how to start one.
func startHint(err error) error {
	e, ok := errors.AsType[*engine.Error](err)
	if !ok || !strings.Contains(e.Hint, "does not answer") {
		return err
	}
	with := *e
	with.Hint += "; is it running? tarry serve starts a server"
	return &with
}

// isServer reports whether a URL is that of a server.
func isServer(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
