package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/names"
)

// Token is a name with rights. It does not hold its secret.
type Token struct {
	ID      string    // finds the token in the file; not secret
	Name    string    // for people and logs; 1 to 64 of A-Za-z0-9.@_-
	Scopes  Scope     // its rights
	Queues  []string  // the names and patterns of the queues on which it has them
	Created time.Time // in seconds
	Expires time.Time // the token is invalid from then on; zero: never
	hash    [sha256.Size]byte
}

// May reports whether the token has one of the rights on a queue.
func (t *Token) May(wanted Scope, queue string) bool {
	return t.Scopes.has(wanted) && slices.ContainsFunc(t.Queues, func(p string) bool { return names.Match(p, queue) })
}

// MayAll reports whether the token has one of the rights on all queues.
func (t *Token) MayAll(wanted Scope) bool {
	return t.Scopes.has(wanted) && slices.Contains(t.Queues, "*")
}

// Has reports whether the token has one of the rights, on any queues.
func (t *Token) Has(wanted Scope) bool { return t.Scopes.has(wanted) }

// Expired reports whether the token has expired.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// same reports whether two are the same token with the same rights.
func (t *Token) same(o *Token) bool {
	return t.ID == o.ID && t.Name == o.Name && t.hash == o.hash && t.Scopes == o.Scopes && slices.Equal(t.Queues, o.Queues) && t.Expires.Equal(o.Expires)
}

// proves reports whether a secret is this token's. Its time does not reveal how much of the
// secret is right.
func (t *Token) proves(secret string) bool {
	hash := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(hash[:], t.hash[:]) == 1
}

const (
	secretPrefix = "tarry_" // lets scanners for secrets recognise tokens
	idBytes      = 5
	secretBytes  = 32
	maxSecret    = 128
	maxName      = 64
)

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// random returns n random bytes as text.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return letters.EncodeToString(b)
}

// mint gives a token its id and returns its secret: tarry_ID_ and 256 random bits.
func (t *Token) mint() (secret string) {
	t.ID = random(idBytes)
	secret = secretPrefix + t.ID + "_" + random(secretBytes)
	t.hash = sha256.Sum256([]byte(secret))
	return secret
}

// idOf returns the id of the token that a secret claims to be; "": it cannot be one of ours.
func idOf(secret string) string {
	rest, ok := strings.CutPrefix(secret, secretPrefix)
	id, _, both := strings.Cut(rest, "_")
	if !ok || !both || len(secret) > maxSecret {
		return ""
	}
	return id
}

// Check returns an error if the token's name, scopes or queues are invalid.
func (t *Token) Check() error {
	switch {
	case t.Name == "" || len(t.Name) > maxName || strings.Trim(t.Name, nameChars) != "":
		return fmt.Errorf("the name %q is not 1 to %d of A-Za-z0-9.@_-", engine.Clip(t.Name), maxName)
	case t.Scopes == 0:
		return errors.New("it has no scope (known are push, work, read, operate and admin)")
	case len(t.Queues) == 0:
		return errors.New("it has no queues (* is all)")
	}
	for _, q := range t.Queues {
		if err := engine.CheckQueue("token", strings.ReplaceAll(q, "*", "x")); err != nil {
			return fmt.Errorf("the queues %q: %w", engine.Clip(q), err)
		}
	}
	return nil
}

const nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.@_-"

// Scope is a set of rights.
type Scope uint8

// The rights of a token. Only Admin includes others: all of them.
const (
	// Push is the right to push, and to cancel, reschedule and rearm messages.
	Push Scope = 1 << iota
	// Work is the right to lease, claim and settle.
	Work
	// Read is the right to look up, list and count, and to read settings and metrics.
	Read
	// Operate is the right to pause, resume, purge, redrive and drop, to cancel and
	// reschedule, and to write settings.
	Operate
	// Admin includes all rights, and those added in later versions.
	Admin

	// Known marks calls that any valid token may make.
	Known = Push | Work | Read | Operate | Admin
	// Anyone marks calls that need no token.
	Anyone = Known + 1
)

var scopeNames = []struct {
	scope Scope
	name  string
}{{Push, "push"}, {Work, "work"}, {Read, "read"}, {Operate, "operate"}, {Admin, "admin"}}

// ParseScope parses push, work, read, operate or admin.
func ParseScope(name string) (Scope, error) {
	for _, s := range scopeNames {
		if s.name == name {
			return s.scope, nil
		}
	}
	return 0, fmt.Errorf("unknown scope %q (known are push, work, read, operate and admin)", name)
}

// Names returns the names of the rights.
func (s Scope) Names() (names []string) {
	for _, n := range scopeNames {
		if s&n.scope != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

// String returns the names, joined by commas.
func (s Scope) String() string { return strings.Join(s.Names(), ",") }

// has reports whether the scope includes one of the rights wanted.
func (s Scope) has(wanted Scope) bool { return s&Admin != 0 || s&wanted != 0 }
