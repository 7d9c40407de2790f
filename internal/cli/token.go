package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/server/access"
)

func (p *Program) tokenCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "token create|ls|revoke",
		Short: "Create, list and revoke the tokens of clients",
		Long: `A token allows what its scopes say, on the queues that match its patterns:

  push     push, cancel, reschedule, rearm
  work     lease, claim, settle
  read     look up, list, count; settings and metrics
  operate  pause, resume, purge, redrive, drop, cancel, reschedule; write settings
  admin    all of these

These commands change the file that serve is given with --tokens. The server reads it
again by itself.`,
	}, "usage: tarry token create|ls|revoke --tokens FILE", p.tokenCreateCommand(), p.tokenListCommand(), p.tokenRevokeCommand())
}

// onTokens makes cmd a command on a file of tokens.
func (p *Program) onTokens(cmd *cobra.Command, do func(file access.File, args []string) error) *cobra.Command {
	path := cmd.Flags().String("tokens", "", "the file of tokens")
	p.jsonFlag(cmd, "print JSON, one object a line")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if *path == "" {
			return usagef("as in --tokens tokens.json; serve is given the same", "--tokens is missing")
		}
		return do(access.File(*path), args)
	}
	return cmd
}

// shownToken is a token as shown, without its secret.
type shownToken struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Scopes  []string `json:"scopes"`
	Queues  []string `json:"queues"`
	Created string   `json:"created"`
	Expires string   `json:"expires,omitempty"`
	Expired bool     `json:"expired,omitempty"`
	Token   string   `json:"token,omitempty"` // the secret, only when it is made
}

func shownTokenOf(t *access.Token, now time.Time) shownToken {
	s := shownToken{ID: t.ID, Name: t.Name, Scopes: t.Scopes.Names(), Queues: t.Queues, Created: formatTime(t.Created), Expired: t.Expired(now)}
	if !t.Expires.IsZero() {
		s.Expires = formatTime(t.Expires)
	}
	return s
}

func (p *Program) tokenCreateCommand() *cobra.Command {
	var (
		scopes, queues []string
		expires        time.Duration
		out            string
	)
	cmd := p.onTokens(&cobra.Command{
		Use:   "create NAME",
		Short: "Create a token and print it, this once",
		Example: `  tarry token create shop --tokens tokens.json --scope push --queue 'order.*' --out shop.token
  tarry token create prometheus --tokens tokens.json --scope read --expires 365d`,
		Args: exactly("NAME"),
	}, func(file access.File, args []string) error {
		t := access.Token{Name: args[0], Queues: queues}
		for _, name := range scopes {
			scope, err := access.ParseScope(name)
			if err != nil {
				return usagef("", "--scope: %v", err)
			}
			t.Scopes |= scope
		}
		if t.Scopes == 0 {
			return usagef("one or several of push, work, read, operate and admin", "--scope is missing")
		}
		if err := t.Check(); err != nil {
			return usagef("", "%v", err)
		}
		if expires > 0 {
			t.Expires = p.Now().Add(expires)
		}
		return p.createToken(file, t, out)
	})
	f := cmd.Flags()
	f.StringSliceVar(&scopes, "scope", nil, "what it may do: push, work, read, operate, admin; may be repeated")
	f.StringSliceVar(&queues, "queue", []string{"*"}, "queue, or pattern of queues, that it is for; may be repeated")
	f.Var(durationFlag(&expires), "expires", "how long it is good, such as 90d; 0: for ever")
	f.StringVar(&out, "out", "", "write it into this new file, that only you may read")
	return cmd
}

// createToken makes a token. It first creates the --out file, since a token that cannot be
// handed over is of no use.
func (p *Program) createToken(file access.File, t access.Token, out string) error {
	to := (*os.File)(nil)
	if out != "" {
		var err error
		if to, err = os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return usagef("name a file that is not there yet", "--out: %v", err)
		}
		defer to.Close()
	}
	made, secret, err := file.Create(t, p.Now())
	if err != nil {
		if to != nil {
			_ = os.Remove(out)
		}
		return failedf(err, "", "no token was made: %v", err)
	}
	o, s := p.printer(), shownTokenOf(&made, p.Now())
	if to != nil {
		if _, err := to.WriteString(secret + "\n"); err != nil {
			_, _ = file.Revoke(made.ID)
			return failedf(err, "", "no token was made: %v", err)
		}
	} else {
		s.Token = secret
	}
	fmt.Fprintf(p.Stderr, "tarry: the token %s has the id %s, and the scopes %s on %s%s\n", made.Name, made.ID, made.Scopes, strings.Join(made.Queues, ","), until(&made))
	if out == "" || p.json {
		o.line(s, "%s", secret)
	}
	return o.flush()
}

func until(t *access.Token) string {
	if t.Expires.IsZero() {
		return ""
	}
	return " until " + formatTime(t.Expires)
}

func (p *Program) tokenListCommand() *cobra.Command {
	return p.onTokens(&cobra.Command{
		Use:     "ls",
		Short:   "List the tokens, without their secrets",
		Example: "  tarry token ls --tokens tokens.json",
		Args:    exactly(),
	}, func(file access.File, args []string) error {
		all, err := file.Read()
		if err != nil {
			return tokensError(err)
		}
		o := p.printer()
		o.head("ID", "NAME", "SCOPES", "QUEUES", "CREATED", "EXPIRES")
		for i := range all {
			s := shownTokenOf(&all[i], p.Now())
			expires := orDash(s.Expires)
			if s.Expired {
				expires = "expired"
			}
			o.row(s, s.ID, s.Name, all[i].Scopes, strings.Join(s.Queues, ","), s.Created, expires)
		}
		return o.flush()
	})
}

func (p *Program) tokenRevokeCommand() *cobra.Command {
	return p.onTokens(&cobra.Command{
		Use:     "revoke NAME|ID",
		Short:   "Revoke a token; a running server notices within a second",
		Example: "  tarry token revoke shop --tokens tokens.json",
		Args:    exactly("NAME|ID"),
	}, func(file access.File, args []string) error {
		gone, err := file.Revoke(args[0])
		if errors.Is(err, access.ErrNotFound) {
			return &tarry.Error{Op: "token revoke " + args[0], Err: tarry.ErrNotFound, Hint: "tarry token ls shows the tokens"}
		}
		if err != nil {
			return tokensError(err)
		}
		o := p.printer()
		for i := range gone {
			o.line(shownTokenOf(&gone[i], p.Now()), "revoked %s, id %s", gone[i].Name, gone[i].ID)
		}
		return o.flush()
	})
}

// tokensError returns the error of reading a file of tokens.
func tokensError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("tarry token create makes it", "--tokens: %v", err)
	}
	return failed(err)
}
