package redisengine

import (
	"crypto/sha1"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// TestTokensOfOneCall: whoever has a token settles with it, in whichever process, and
// nobody makes another token of it, nor one of a lease that is over.
func TestTokensOfOneCall(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e, other := openStore(t, s.URL()), openStore(t, s.URL())
	rare := plain("q", "rare")
	rare.Priority = new(uint32(7))
	rare.ExpireAfter = time.Hour
	push(t, e, plain("q", "a"), plain("q", "b"), plain("q", ""), rare)
	leases := leaseAll(t, e, "q")
	if len(leases) != 4 {
		t.Fatalf("leased %d", len(leases))
	}
	settle := func(e *Engine, do engine.Action, tokens ...string) []engine.Settled {
		t.Helper()
		var all []engine.Settlement
		for _, token := range tokens {
			all = append(all, engine.Settlement{Token: token, Do: do})
		}
		settled, err := e.Settle(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		return settled
	}
	refuses := func(what, forged string) {
		t.Helper()
		for do := engine.Ack; do <= engine.Extend; do++ {
			if do == engine.Snooze {
				continue // it needs a time, and is looked at like the others
			}
			if r := settle(other, do, forged); !errors.Is(r[0].Err, engine.ErrLeaseLost) {
				t.Errorf("%s, %s: %+v", what, do, r[0])
			}
		}
	}
	parse := func(text string) codec.Token {
		t.Helper()
		parsed, ok := codec.ParseToken(text)
		if !ok {
			t.Fatalf("%q is no token", text)
		}
		return parsed
	}

	forged := parse(leases[0].Token)
	forged.Nonce = parse(leases[1].Token).Nonce
	refuses("the nonce of another message", forged.String())

	released := leases[0].Token
	if r := settle(other, engine.Release, released); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	empty := sha1.Sum([]byte(member(leases[0].ID))) // as if of a secret that is not there
	copy(forged.Nonce[:], empty[:])
	refuses("the nonce of no secret", forged.String())
	again := leaseAll(t, e, "q")
	refuses("a token of the lease before", released)

	tokens := []string{again[0].Token}
	for _, l := range leases[1:] {
		tokens = append(tokens, l.Token)
	}
	for i, r := range settle(other, engine.Ack, append(tokens, tokens[0])...) {
		if lost := errors.Is(r.Err, engine.ErrLeaseLost); lost != (i == len(tokens)) || !lost && r.State != engine.Gone {
			t.Errorf("ack %d: %+v", i, r)
		}
	}
}

// TestSecretOfSome: that one settlement of a call shows the secret of a lease says nothing
// of the others.
func TestSecretOfSome(t *testing.T) {
	t.Parallel()
	e := openStore(t, redistest.Start(t).URL())
	push(t, e, plain("q", "a"), plain("q", "b"), plain("q", "c"))
	leases := leaseAll(t, e, "q")
	forged, _ := codec.ParseToken(leases[1].Token)
	forged.Nonce[0]++
	settled, err := e.Settle(t.Context(), []engine.Settlement{
		{Token: leases[0].Token, Do: engine.Ack}, {Token: forged.String(), Do: engine.Ack}, {Token: leases[2].Token, Do: engine.Ack},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range settled {
		if lost := errors.Is(s.Err, engine.ErrLeaseLost); lost != (i == 1) || !lost && s.State != engine.Gone {
			t.Errorf("ack %d: %+v", i, s)
		}
	}
}
