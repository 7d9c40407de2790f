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
	"github.com/tarryhq/tarry/internal/pattern"
)

// Token is a name with rights. Its secret is not in it.
type Token struct {
	ID      string    // by which it is found; no secret
	Name    string    // what people and logs call it, 1 to 64 of A-Za-z0-9.@_-
	Scopes  Scope     // its rights,
	Queues  []string  // on the queues of these names and patterns
	Created time.Time // in seconds
	Expires time.Time // from then on it is worth nothing; zero: never
	hash    [sha256.Size]byte
}

// May reports whether the token has one of the rights on a queue.
func (t *Token) May(wanted Scope, queue string) bool {
	return t.Scopes.has(wanted) && slices.ContainsFunc(t.Queues, func(p string) bool { return pattern.Takes(p, queue) })
}

// MayAll reports whether the token has one of the rights on all queues.
func (t *Token) MayAll(wanted Scope) bool {
	return t.Scopes.has(wanted) && slices.Contains(t.Queues, "*")
}

// Has reports whether the token has one of the rights, on whatever queues.
func (t *Token) Has(wanted Scope) bool { return t.Scopes.has(wanted) }

// Expired reports whether the token is worth nothing any more.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// same reports whether two are one token with the same rights.
func (t *Token) same(o *Token) bool {
	return t.ID == o.ID && t.Name == o.Name && t.hash == o.hash && t.Scopes == o.Scopes && slices.Equal(t.Queues, o.Queues) && t.Expires.Equal(o.Expires)
}

// proves reports whether a secret is this token's, in a time that does not tell how much
// of it is right.
func (t *Token) proves(secret string) bool {
	hash := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(hash[:], t.hash[:]) == 1
}

const (
	secretPrefix = "tarry_" // by which scanners for secrets know them
	idBytes      = 5
	secretBytes  = 32
	maxSecret    = 128
	maxName      = 64
)

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// random is n bytes of chance as text.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return letters.EncodeToString(b)
}

// mint gives a token its id and its secret, which is tarry_ID_ and 256 bits of chance.
func (t *Token) mint() (secret string) {
	t.ID = random(idBytes)
	secret = secretPrefix + t.ID + "_" + random(secretBytes)
	t.hash = sha256.Sum256([]byte(secret))
	return secret
}

// idOf is the id of the token that a secret claims to be, "" if it is none of ours.
func idOf(secret string) string {
	rest, ok := strings.CutPrefix(secret, secretPrefix)
	id, _, both := strings.Cut(rest, "_")
	if !ok || !both || len(secret) > maxSecret {
		return ""
	}
	return id
}

// Check refuses what cannot be a token.
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
