package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/storeurl"
)

const (
	defaultServer = "http://127.0.0.1:8277"
	defaultStore  = "disk:tarry-data"
)

// target is where a client command works.
type target struct {
	server, store, token string
	timeout              time.Duration // 0: none
}

// clientCommand is the work of a client command once its target is open.
type clientCommand func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error

// client makes cmd a client command. It adds the common flags, opens the target, calls f
// within the timeout, and closes the target. f uses cmd.Context for work that may rightly take
// longer.
func (p *Program) client(do whenMissing, cmd *cobra.Command, f clientCommand) *cobra.Command {
	p.connectFlags(cmd)
	timeoutFlag(cmd, &p.target.timeout, defaultTimeout, "give up after this long; 0: never")
	p.jsonFlag(cmd, "print JSON, one object a line")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if p.dryRun {
			do = showEmpty
		}
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

// closing closes c after work, and returns the work's error, else that of Close.
func closing(c *tarry.Client, err error) error { return cmp.Or(err, c.Close()) }

// connectFlags adds the flags that say where the messages are.
func (p *Program) connectFlags(cmd *cobra.Command) {
	p.target.timeout = defaultTimeout
	cmd.Flags().StringVar(&p.target.server, "server", defaultServer, "the server's URL, or HOST:PORT")
	cmd.Flags().String("server-file", "", "file that holds the server's URL")
	storeFlag(cmd, &p.target.store, "", "work on this store directly, such as disk:tarry-data")
	p.tokenFlag(cmd)
}

// storeFlag adds the flags --store and --store-file.
func storeFlag(cmd *cobra.Command, store *string, otherwise, usage string) {
	cmd.Flags().StringVar(store, "store", otherwise, usage)
	cmd.Flags().String("store-file", "", "file that holds the store's URL")
}

const defaultTimeout = 30 * time.Second

func timeoutFlag(cmd *cobra.Command, timeout *time.Duration, otherwise time.Duration, usage string) {
	*timeout = otherwise
	cmd.Flags().Var(durationFlag(timeout), "timeout", usage)
}

// withTimeout is context.WithTimeout, except that 0 means no timeout.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// url returns the URL to open. Of --server and --store the one set at the closer level counts.
// If both are in the environment or both in the file, it is the server. Otherwise a store set
// for serve would make its clients open that store.
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

// open opens the target within the timeout; 0: no limit.
func (p *Program) open(cmd *cobra.Command, do whenMissing) (*tarry.Client, error) {
	raw, err := p.url()
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err == nil { // else openStore reports the error
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

// openStore opens a store. If a local one cannot be opened, that is a failure of this call,
// not of a server elsewhere. Without cfg nothing is logged, since commands print their errors.
func openStore(ctx context.Context, store string, cfg *tarry.Config) (*tarry.Client, error) {
	c, err := tarry.Open(ctx, store, cmp.Or(cfg, &tarry.Config{Logger: slog.New(slog.DiscardHandler)}))
	if _, local := diskDir(store); local && errors.Is(err, tarry.ErrUnavailable) {
		return nil, failed(err)
	}
	return c, err
}

// isServer reports whether a URL names a server.
func isServer(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// tokenFlag adds the flags for a server's token. --token exists only to be refused.
func (p *Program) tokenFlag(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.target.token, "token", "", "")
	f.Lookup("token").Hidden = true
	f.String("token-file", "", "file that holds the server's token; or the token itself in TARRY_TOKEN")
}

// withToken returns the URL of a server with the token in it, unless the URL has its own.
func (p *Program) withToken(u *url.URL) (string, error) {
	token := p.target.token
	switch {
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", usagef("it begins with tarry_, as tarry token create printed it", "the token is not one word")
	case token == "" || u.User != nil || u.Query().Has("token_file"):
		return u.String(), nil
	}
	with := *u
	with.User = url.User(token)
	return with.String(), nil
}

// whenMissing says what a command does if its disk store does not exist.
type whenMissing int

const (
	makeIt    whenMissing = iota
	refuseIt              // the name may be wrong
	showEmpty             // for commands that only read: making a store would hide a wrong name
)

// absentDir returns the directory of a disk store that is missing or empty: nobody has made it
// yet.
func absentDir(u *url.URL) (dir string, absent bool) {
	if u.Scheme != "disk" {
		return "", false
	}
	dir = storeurl.New(u).Path()
	names, err := os.ReadDir(dir)
	return dir, errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0
}

// checkPresent returns an error if a disk store does not exist.
func checkPresent(op string, u *url.URL) error {
	if dir, absent := absentDir(u); absent {
		return &engine.Error{Op: op, Err: tarry.ErrNotFound, Hint: "there is no store in " + dir}
	}
	return nil
}

// absent is an empty stand-in for a disk store that does not exist.
type absent struct{ *memengine.Engine }

// Capabilities names the engine that the store would have.
func (a absent) Capabilities() engine.Capabilities {
	c := a.Engine.Capabilities()
	c.Name = "disk"
	return c
}

// openMissing opens a disk store that does not exist. If it returns no client and no error,
// open continues as usual.
func (p *Program) openMissing(op string, u *url.URL, do whenMissing) (*tarry.Client, error) {
	switch do {
	case makeIt:
		return nil, nil
	case refuseIt:
		return nil, checkPresent(op, u)
	}
	dir, is := absentDir(u)
	if !is {
		return nil, nil
	}
	if _, _, err := diskengine.ParseURL(u); err != nil {
		return nil, err
	}
	fmt.Fprintf(p.Stderr, "there is no store in %s yet; it is shown as empty\n", shown(dir))
	return tarry.New(absent{memengine.New(nil)}, &tarry.Config{Logger: slog.New(slog.DiscardHandler)}), nil
}
