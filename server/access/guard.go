package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/notify"
	"github.com/tarryhq/tarry/internal/secretfile"
)

// Guard finds the tokens of requests in a file, and reads it again after a change. It may be
// used by many goroutines.
type Guard struct {
	file   File
	tokens *secretfile.Value[tokens]
	audit  *Audit
	log    *slog.Logger
	told   *notify.Lines // bounds the log lines about requests without a valid token
	fails  failures
}

// tokens are the tokens of a file when it was read, by id; nil: the file is gone.
type tokens map[string]*Token

// GuardConfig sets up a Guard. The zero value, and nil, work.
type GuardConfig struct {
	// Logger gets requests without a valid token: for each host the first, the second, the
	// fourth and so on, but in all a hundred lines and then one a second. It also gets
	// problems with the file. It never gets a token. Default: slog.Default().
	Logger *slog.Logger

	// Audit gets a line for each token added or removed. Default: none.
	Audit *Audit
}

// goneGrace is how long tokens stay valid after their file has gone. Editors and remounts
// remove it only for a moment.
const goneGrace = 5 * time.Second

// NewGuard reads the tokens of a file. If the file cannot be read later, the tokens stay as
// they were and the Logger is told. The exception is a file that is gone and still gone 5 s
// later: then all tokens are revoked.
func NewGuard(file File, cfg *GuardConfig) (*Guard, error) {
	c := *cmp.Or(cfg, new(GuardConfig))
	g := &Guard{file: file, log: cmp.Or(c.Logger, slog.Default()), audit: c.Audit, told: notify.NewLines(100, time.Second)}
	var last []Token
	first := true
	read := func() (tokens, error) {
		all, err := file.Read()
		if err != nil {
			return nil, err
		}
		t := make(tokens, len(all))
		for i := range all {
			t[all[i].ID] = &all[i]
		}
		if !first {
			g.changed(compare(last, all))
		}
		last, first = all, false
		return t, nil
	}
	failed := func(err error) {
		if errors.Is(err, fs.ErrNotExist) {
			g.log.Error("the file of tokens is gone, and unless it comes back all tokens are revoked", "within", goneGrace, "error", err)
			return
		}
		g.log.Error("the tokens cannot be read again, and stay as they were", "error", err)
	}
	var err error
	if g.tokens, err = secretfile.NewValue(read, failed, string(file)); err != nil {
		return nil, err
	}
	g.tokens.OnGone(goneGrace, func() tokens {
		g.log.Error("the file of tokens is gone, and all its tokens are revoked until it is there again", "file", string(file), "tokens", len(last))
		g.changed(compare(last, nil))
		last = nil
		return nil
	})
	return g, nil
}

// Trouble returns the problem with the file of tokens; nil: none. It names the file, so do not
// show it to a client without a token.
func (g *Guard) Trouble() error {
	g.tokens.Get()
	return g.tokens.Trouble()
}

// Closed reports whether no token is valid because the file is gone.
func (g *Guard) Closed() bool { return g.tokens.Get() == nil }

// changed notes the tokens added and removed in the audit log.
func (g *Guard) changed(came, went []Token) {
	if g.audit == nil {
		return
	}
	note := func(what string, t *Token) {
		g.audit.Note("what", what, "token", t.Name, "token_id", t.ID, "scopes", t.Scopes.Names(), "queues", t.Queues, "from", string(g.file), "result", "ok")
	}
	for i := range came {
		note("token create", &came[i])
	}
	for i := range went {
		note("token revoke", &went[i])
	}
}

// Refresh reads the tokens again at once, if the file has changed.
func (g *Guard) Refresh() { g.tokens.Refresh() }

// Failed says why a request has no valid token.
type Failed struct {
	Reason string // never contains the token
	Hint   string
}

// Error returns the reason.
func (f *Failed) Error() string { return f.Reason }

// Who returns the token of a request, or a *Failed.
func (g *Guard) Who(r *http.Request) (*Token, error) {
	secret, err := bearer(r)
	if err != nil {
		return nil, err
	}
	return g.BySecret(secret)
}

// BySecret returns the token with a secret, or a *Failed.
func (g *Guard) BySecret(secret string) (*Token, error) {
	all := g.tokens.Get()
	if all == nil {
		return nil, errGone
	}
	t := all[idOf(secret)]
	if t == nil || !t.proves(secret) {
		return nil, &Failed{"the token is not known here", "it may have been revoked; tarry token ls shows those that there are"}
	}
	if t.Expired(time.Now()) {
		return nil, &Failed{fmt.Sprintf("the token %s expired at %s", t.Name, t.Expires.Format(time.RFC3339)), "make another with tarry token create"}
	}
	return t, nil
}

// ByName returns the token with a name that has not expired, or a *Failed. It asks for no
// secret: an operator chose the name for clients that cannot authenticate.
func (g *Guard) ByName(name string) (*Token, error) {
	all := g.tokens.Get()
	if all == nil {
		return nil, errGone
	}
	now := time.Now()
	for _, t := range all {
		if t.Name == name && !t.Expired(now) {
			return t, nil
		}
	}
	return nil, &Failed{fmt.Sprintf("there is no valid token of the name %q", engine.Clip(name)), "tarry token ls shows those that there are"}
}

var errGone = &Failed{"no token is known here: the file of tokens is gone", "the server's operator has to put it back; the server's log names it"}

// Current returns the present form of a token that was valid, with its present rights; nil:
// it is no longer valid.
func (g *Guard) Current(t *Token) *Token {
	now := g.tokens.Get()[t.ID]
	if now == nil || now.hash != t.hash || now.Expired(time.Now()) {
		return nil
	}
	return now
}

const scheme = "Bearer"

// bearer returns the secret that a request brings.
func bearer(r *http.Request) (string, error) {
	const hint = "send the header Authorization: Bearer TOKEN; clients of tarry take --token-file or TARRY_TOKEN"
	all := r.Header["Authorization"]
	if len(all) == 0 {
		return "", &Failed{"a token is needed", hint}
	}
	kind, secret, ok := strings.Cut(all[0], " ")
	if len(all) > 1 || !ok || !strings.EqualFold(kind, scheme) {
		return "", &Failed{"the Authorization is not that of a bearer", hint}
	}
	return strings.TrimSpace(secret), nil
}

// Refused notes that a request from an address, HOST:PORT, had no valid token, and delays it.
// The delay grows with the recent failures of the host, to a second at most. Valid tokens are
// never delayed. It returns early when ctx ends.
func (g *Guard) Refused(ctx context.Context, address string, err error) {
	n, delay, done := g.fails.add(address, time.Now())
	defer done()
	if n&(n-1) != 0 {
		g.told.Skip()
	} else if left, ok := g.told.Next(); ok {
		g.log.Warn("a request had no valid token", "from", address, "reason", err.Error(), "failures", n, "not_told", left)
	}
	if delay > 0 {
		duration.Sleep(ctx, delay)
	}
}
