package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry/internal/secretfile"
)

// File is the path of a file of tokens. Its methods read and replace it as a whole, so that a
// reader never sees half a change.
type File string

// stored is a token in the file's format.
type stored struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Hash    string    `json:"hash"`
	Scopes  []string  `json:"scopes"`
	Queues  []string  `json:"queues"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
}

type content struct {
	Tokens []stored `json:"tokens"`
}

const hashPrefix = "sha256:"

// ErrNotFound says that the file has no such token.
var ErrNotFound = errors.New("there is no such token")

// Read returns the tokens in the order in which they were made. A file is refused if others
// than its owner may read or write it. The exception is a file of root's, which its group may
// read.
func (f File) Read() ([]Token, error) {
	data, err := secretfile.Read(string(f))
	if err != nil {
		return nil, err
	}
	var c content
	if err := json.Unmarshal(data, &c, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s is not a file of tokens (tarry token create makes one): %w", string(f), err)
	}
	all, ids := make([]Token, len(c.Tokens)), make(map[string]bool)
	for i := range c.Tokens {
		if all[i], err = c.Tokens[i].token(); err == nil && ids[all[i].ID] {
			err = errors.New("another has its id")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: token %d: %w", string(f), i+1, err)
		}
		ids[all[i].ID] = true
	}
	return all, nil
}

func (s *stored) token() (Token, error) {
	t := Token{ID: s.ID, Name: s.Name, Queues: s.Queues, Created: s.Created, Expires: s.Expires}
	digits, ok := strings.CutPrefix(s.Hash, hashPrefix)
	hash, err := hex.DecodeString(digits)
	switch {
	case s.ID == "" || strings.Contains(s.ID, "_"):
		return t, errors.New("it has no id")
	case !ok || err != nil || len(hash) != sha256.Size:
		return t, fmt.Errorf("its hash is not %s and 64 hexadecimal digits", hashPrefix)
	}
	copy(t.hash[:], hash)
	for _, name := range s.Scopes {
		scope, err := ParseScope(name)
		if err != nil {
			return t, err
		}
		t.Scopes |= scope
	}
	return t, t.Check()
}

// Create adds a token to the file, which it makes if need be. The name, scopes and queues of t
// must be set; a zero expiry means never. It returns the token and its secret, which is stored
// nowhere. The name must differ from those of all tokens that have not expired.
func (f File) Create(t Token, now time.Time) (Token, string, error) {
	if err := t.Check(); err != nil {
		return t, "", err
	}
	if t.Expired(now) {
		return t, "", errors.New("it would be expired already")
	}
	t.Created = now.UTC().Truncate(time.Second)
	t.Expires = t.Expires.UTC().Truncate(time.Second)
	secret := t.mint()
	err := f.change(func(all []Token) ([]Token, error) {
		for i := range all {
			if all[i].Name == t.Name && !all[i].Expired(now) {
				return nil, fmt.Errorf("there is a token of the name %s already, with the id %s (revoke it first, or choose another name)", t.Name, all[i].ID)
			}
		}
		return append(all, t), nil
	})
	return t, secret, err
}

// Revoke removes from the file the token with an id, or all with a name. It returns
// ErrNotFound if there is none.
func (f File) Revoke(which string) (gone []Token, err error) {
	err = f.change(func(all []Token) ([]Token, error) {
		left := slices.DeleteFunc(slices.Clone(all), func(t Token) bool { return t.ID == which })
		if len(left) == len(all) {
			left = slices.DeleteFunc(left, func(t Token) bool { return t.Name == which })
		}
		if len(left) == len(all) {
			return nil, ErrNotFound
		}
		_, gone = compare(all, left)
		return left, nil
	})
	return gone, err
}

// compare returns the tokens that came and those that went; a changed token is in both.
func compare(before, after []Token) (came, went []Token) {
	among := func(in []Token) func(Token) bool {
		return func(t Token) bool {
			return slices.ContainsFunc(in, func(o Token) bool { return o.same(&t) })
		}
	}
	return slices.DeleteFunc(slices.Clone(after), among(before)), slices.DeleteFunc(slices.Clone(before), among(after))
}

// change applies change to the tokens and replaces the file. Of two calls at a time one fails.
func (f File) change(change func([]Token) ([]Token, error)) error {
	return secretfile.Replace(string(f), func(next *os.File) error {
		all, err := f.Read()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if all, err = change(all); err != nil {
			return err
		}
		return write(next, all)
	})
}

// write writes tokens in the file's format.
func write(next *os.File, all []Token) error {
	c := content{Tokens: make([]stored, len(all))}
	for i, t := range all {
		c.Tokens[i] = stored{ID: t.ID, Name: t.Name, Hash: hashPrefix + hex.EncodeToString(t.hash[:]), Scopes: t.Scopes.Names(), Queues: t.Queues, Created: t.Created, Expires: t.Expires}
	}
	if err := json.MarshalWrite(next, c, jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err := next.WriteString("\n")
	return err
}
