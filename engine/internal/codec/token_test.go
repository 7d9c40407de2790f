package codec_test

import (
	"errors"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

func TestTokenIsReadAsWritten(t *testing.T) {
	for _, want := range []codec.Token{
		{},
		{Queue: math.MaxUint64, ID: math.MaxUint64, Nonce: codec.NewNonce()},
		{Queue: 1, ID: 1 << 60, Nonce: codec.Nonce{15: 0xff}},
	} {
		s := want.String()
		if got, ok := codec.ParseToken(s); !ok || got != want {
			t.Errorf("wrote %+v, read %+v, %v", want, got, ok)
		}
		if len(s) != codec.TokenChars || len(s) > 128 || url.PathEscape(s) != s || url.QueryEscape(s) != s {
			t.Errorf("%q, %d characters", s, len(s))
		}
		if got := string(want.Append([]byte("x"))); got != "x"+s {
			t.Errorf("appended %q, want x%s", got, s)
		}
	}
}

func TestNoncesDiffer(t *testing.T) {
	if a, b := codec.NewNonce(), codec.NewNonce(); a == b || a == (codec.Nonce{}) {
		t.Errorf("%x, then %x", a, b)
	}
}

// FuzzParseToken: a lease has one token; whatever else is given is none.
func FuzzParseToken(f *testing.F) {
	f.Add(codec.Token{}.String())
	f.Add(codec.Token{Queue: 7, ID: 8, Nonce: codec.Nonce{9}}.String())
	f.Add(strings.Repeat("_", codec.TokenChars))
	f.Add(strings.Repeat("A", codec.TokenChars-1) + "\n")
	f.Add(strings.Repeat("A", codec.TokenChars) + "=")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if got, ok := codec.ParseToken(s); ok && got.String() != s {
			t.Fatalf("%q was read as %+v, which is %q", s, got, got.String())
		}
	})
}

// FuzzPlaceAfter: a place has one cursor in a list; whatever else is given is refused.
func FuzzPlaceAfter(f *testing.F) {
	scheduled := &engine.ListQuery{State: engine.Scheduled}
	f.Add(codec.Place{}.Cursor(scheduled))
	f.Add(codec.Place{At: -62135596800000, ID: 1 << 60}.Cursor(scheduled))
	f.Add(codec.Place{At: math.MinInt64, ID: math.MaxUint64}.Cursor(scheduled))
	f.Add(codec.Place{At: 1, ID: 1}.Cursor(&engine.ListQuery{State: engine.Scheduled, Newest: true}))
	f.Add(codec.Place{At: 1, ID: 1}.Cursor(&engine.ListQuery{State: engine.Dead}))
	f.Add(strings.Repeat("A", 22) + "B")
	f.Add(strings.Repeat("\n", 23))
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		q := &engine.ListQuery{Queue: "q", State: engine.Scheduled, After: s}
		p, err := codec.PlaceAfter(q)
		switch {
		case s == "":
			if p != nil || err != nil {
				t.Fatalf("%v, %v", p, err)
			}
		case err != nil:
			if !errors.Is(err, engine.ErrInvalid) {
				t.Fatal(err)
			}
		case p.Cursor(q) != s:
			t.Fatalf("%q was read as %+v, which is %q", s, *p, p.Cursor(q))
		}
	})
}

func TestCursorIsOfOneList(t *testing.T) {
	lists := []engine.ListQuery{
		{State: engine.Scheduled}, {State: engine.Scheduled, Newest: true}, {State: engine.Ready}, {State: engine.Dead}, {State: engine.Dead, Newest: true},
	}
	place := codec.Place{At: 7, ID: 8}
	for i, of := range lists {
		for j, to := range lists {
			to.After = place.Cursor(&of)
			if got, err := codec.PlaceAfter(&to); (err == nil) != (i == j) || err == nil && *got != place {
				t.Errorf("of %+v, given to %+v: %v, %v", of, to, got, err)
			}
		}
	}
}

func TestSpanOf(t *testing.T) {
	ms := func(n int64) time.Time { return time.UnixMilli(n) }
	behind := func(q engine.ListQuery, at int64, id engine.ID) engine.ListQuery {
		q.After = codec.Place{At: at, ID: id}.Cursor(&q)
		return q
	}
	all := []codec.Place{{-5, 1}, {9, 3}, {10, 1}, {10, 4}, {11, 2}, {20, 5}}
	for _, c := range []struct {
		name string
		q    engine.ListQuery
		want []codec.Place
	}{
		{"all", engine.ListQuery{}, all},
		{"from is held", engine.ListQuery{From: ms(10)}, all[2:]},
		{"to is not", engine.ListQuery{To: ms(10)}, all[:2]},
		{"from a bit later than a millisecond", engine.ListQuery{From: ms(10).Add(1)}, all[4:]},
		{"to a bit later than a millisecond", engine.ListQuery{To: ms(10).Add(1)}, all[:4]},
		{"before 1970", engine.ListQuery{From: ms(-5), To: ms(-4).Add(-1)}, all[:1]},
		{"a bit after one before 1970", engine.ListQuery{From: ms(-5).Add(1), To: ms(9)}, nil},
		{"nothing between", engine.ListQuery{From: ms(11), To: ms(11)}, nil},
		{"upside down", engine.ListQuery{From: ms(20), To: ms(9)}, nil},
		{"behind one", behind(engine.ListQuery{To: ms(20)}, 10, 1), all[3:5]},
		{"behind one before from", behind(engine.ListQuery{From: ms(11)}, 10, 1), all[4:]},
		{"behind one, backwards", behind(engine.ListQuery{From: ms(9), Newest: true}, 10, 4), all[1:3]},
		{"behind one after to, backwards", behind(engine.ListQuery{To: ms(11), Newest: true}, 20, 5), all[:4]},
	} {
		span, err := codec.SpanOf(&c.q)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got []codec.Place
		for _, p := range all {
			if span.Holds(p) {
				got = append(got, p)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPlacesAreInTheOrderOfLists(t *testing.T) {
	order := []codec.Place{{At: -1, ID: 9}, {At: 0, ID: 1}, {At: 0, ID: 2}, {At: 1, ID: 1}}
	for i, a := range order {
		for j, b := range order {
			if got := a.Compare(b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%v and %v: %d", a, b, got)
			}
		}
	}
}
