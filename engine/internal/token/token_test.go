package token_test

import (
	"errors"
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

func TestTokenIsReadAsWritten(t *testing.T) {
	for _, want := range []token.Token{
		{},
		{Queue: math.MaxUint64, ID: math.MaxUint64, Nonce: token.NewNonce()},
		{Queue: 1, ID: 1 << 60, Nonce: token.Nonce{15: 0xff}},
	} {
		s := want.String()
		if got, ok := token.Parse(s); !ok || got != want {
			t.Errorf("wrote %+v, read %+v, %v", want, got, ok)
		}
		if len(s) != token.Chars || len(s) > 128 || url.PathEscape(s) != s || url.QueryEscape(s) != s {
			t.Errorf("%q, %d characters", s, len(s))
		}
		if got := string(want.Append([]byte("x"))); got != "x"+s {
			t.Errorf("appended %q, want x%s", got, s)
		}
	}
}

func TestNoncesDiffer(t *testing.T) {
	if a, b := token.NewNonce(), token.NewNonce(); a == b || a == (token.Nonce{}) {
		t.Errorf("%x, then %x", a, b)
	}
}

// FuzzParse: a lease has one token; whatever else is given is none.
func FuzzParse(f *testing.F) {
	f.Add(token.Token{}.String())
	f.Add(token.Token{Queue: 7, ID: 8, Nonce: token.Nonce{9}}.String())
	f.Add(strings.Repeat("_", token.Chars))
	f.Add(strings.Repeat("A", token.Chars-1) + "\n")
	f.Add(strings.Repeat("A", token.Chars) + "=")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := token.Parse(s); ok && got.String() != s {
			t.Fatalf("%q was read as %+v, which is %q", s, got, got.String())
		}
	})
}

// FuzzAfter: a place has one cursor; whatever else is given is refused.
func FuzzAfter(f *testing.F) {
	f.Add(token.Place{}.Cursor())
	f.Add(token.Place{At: -62135596800000, ID: 1 << 60}.Cursor())
	f.Add(token.Place{At: math.MinInt64, ID: math.MaxUint64}.Cursor())
	f.Add(strings.Repeat("A", 21) + "B")
	f.Add(strings.Repeat("\n", 22))
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := token.After(&engine.ListQuery{Queue: "q", After: s})
		switch {
		case s == "":
			if p != nil || err != nil {
				t.Fatalf("%v, %v", p, err)
			}
		case err != nil:
			if !errors.Is(err, engine.ErrInvalid) {
				t.Fatal(err)
			}
		case p.Cursor() != s:
			t.Fatalf("%q was read as %+v, which is %q", s, *p, p.Cursor())
		}
	})
}

func TestPlacesAreInTheOrderOfLists(t *testing.T) {
	order := []token.Place{{At: -1, ID: 9}, {At: 0, ID: 1}, {At: 0, ID: 2}, {At: 1, ID: 1}}
	for i, a := range order {
		for j, b := range order {
			if got := a.Compare(b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%v and %v: %d", a, b, got)
			}
		}
	}
}

func BenchmarkString(b *testing.B) {
	b.ReportAllocs()
	t := token.Token{Queue: 1, ID: 2, Nonce: token.NewNonce()}
	for b.Loop() {
		_ = t.String()
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	s := token.Token{Queue: 1, ID: 2, Nonce: token.NewNonce()}.String()
	for b.Loop() {
		_, _ = token.Parse(s)
	}
}
