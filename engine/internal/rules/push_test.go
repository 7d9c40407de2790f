package rules_test

import (
	"errors"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

func TestPush(t *testing.T) {
	lease := codec.Token{Queue: 1, ID: 2, Nonce: codec.NewNonce()}
	for _, x := range []struct {
		state      engine.State
		onConflict engine.Conflict
		token      string
		want       engine.Outcome
		err        error
	}{
		{engine.Gone, engine.Reject, "", engine.Created, nil},
		{engine.Gone, engine.Keep, "", engine.Created, nil},
		{engine.Gone, engine.Replace, lease.String(), engine.Created, engine.ErrLeaseLost},
		{engine.Scheduled, engine.Reject, "", 0, engine.ErrExists},
		{engine.Scheduled, engine.Rearm, "", engine.Replaced, nil},
		{engine.Ready, engine.Keep, "", engine.Kept, nil},
		{engine.Leased, engine.Keep, "", engine.Kept, nil},
		{engine.Leased, engine.Replace, "", 0, engine.ErrLeased},
		{engine.Leased, engine.Replace, lease.String(), engine.Replaced, nil},
		{engine.Leased, engine.Replace, codec.Token{}.String(), engine.Created, engine.ErrLeaseLost},
		{engine.Finished, engine.Reject, "", 0, engine.ErrExists},
		{engine.Finished, engine.Keep, "", engine.Kept, nil},
		{engine.Finished, engine.KeepDue, "", engine.Created, nil},
	} {
		h := rules.Holder{State: x.state}
		if x.state == engine.Leased {
			h.Lease = lease
		}
		in := engine.Message{Queue: "q", Key: "k", OnConflict: x.onConflict, Token: x.token}
		if got, err := rules.Push(&in, &h); got != x.want || !errors.Is(err, x.err) {
			t.Errorf("%v, %v, token %q: %v, %v, want %v, %v", x.state, x.onConflict, x.token, got, err, x.want, x.err)
		}
	}
}
