// Package sqltest tests engines on databases during other transactions, with the same tests
// for all databases.
package sqltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// Bed is an empty store in a database.
type Bed struct {
	// Open returns another engine on the store, like that of another process. It is closed
	// with the test. It uses wrap of the store, unless wrap is nil.
	Open func(t *testing.T, wrap func(sqlengine.Store) sqlengine.Store) engine.Whole
	// Alone is Open with a pool of one connection.
	Alone func(t *testing.T) engine.Whole
	// Waits returns when a transaction waits for a lock on the store's tables.
	Waits func(t *testing.T)
	// Begin begins a caller's transaction on a connection of such an engine's pool. It is
	// rolled back with the test, unless it was committed.
	Begin func(t *testing.T, e engine.Engine) Transaction
	// Lose loses all that was committed, as a failover to an outdated replica does.
	Lose func(t *testing.T)
}

// Transaction is a caller's transaction.
type Transaction struct {
	engine.Engine
	Commit func() error
}

// Client is the client that InTx needs.
type Client struct{ E engine.Engine }

// Engine is the engine behind the client.
func (c Client) Engine() engine.Engine { return c.E }

// On returns a client of another engine.
func (c Client) On(e engine.Engine) Client { return Client{e} }

// within bounds waits that would never end in a failing test.
const within = time.Minute

func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func push(t *testing.T, e engine.Engine, msgs ...engine.Message) []engine.PushResult {
	t.Helper()
	r, err := e.Push(patience(t), msgs)
	ok(t, err)
	for i := range r {
		ok(t, r[i].Err)
	}
	return r
}

func lease(t *testing.T, e engine.Engine, most int) []engine.Lease {
	t.Helper()
	g, err := e.Lease(patience(t), []engine.Want{{Queue: "q", Max: most, TTR: time.Minute, Remote: true}})
	ok(t, err)
	ok(t, g.Queues[0].Err)
	return g.Queues[0].Messages
}

// Run runs all tests, each on a bed of its own.
func Run(t *testing.T, bed func(t *testing.T) Bed) {
	for name, test := range map[string]func(*testing.T, Bed){
		"gathered pushes":                   pushes,
		"gathered pushes begun meanwhile":   pushesBegunMeanwhile,
		"gathered pushes of many keys":      pushesOfMany,
		"gathered pushes to a full queue":   pushesToBounded,
		"gathered pushes to a slow store":   pushesToSlow,
		"gathered cancels":                  cancels,
		"gathered settlements":              settlements,
		"a late ack beside a push":          lateAck,
		"the first key remembered":          firstMemory,
		"a pause beside the first memory":   firstMemoryKeepsPause,
		"few looks at what is first":        fewLooks,
		"no more messages than in_flight":   readsNoMoreThanAllowed,
		"a queue that was lost":             lostQueue,
		"ids that were lost":                lostIDs,
		"a key beside its replacement":      besideReplacement,
		"ranked behind those that wait":     ranked,
		"a purge that had to wait":          purgeWaits,
		"a redrive that had to wait":        redriveWaits,
		"a purge of what was remembered":    purgeRemembered,
		"a pool of one connection":          alone,
		"a lease beside a pause":            pauseBeside,
		"a lease during a peek":             leaseDuringPeek,
		"a peek beside locked rows":         peekBesideLocked,
		"a peek past many":                  peekPastMany,
		"a peek and a find of many":         peekAndFindMany,
		"a claim beside a push":             claimBesidePush,
		"a push that has expired":           pushExpired,
		"a slow answer":                     slowAnswer,
		"acks beside a bounded push":        acksBesideBounded,
		"whole looks that take long":        lookWithoutWaiting,
		"closed beside a long look":         closeBesideSlowLook,
		"a clock that is set back":          clockSetBack,
		"a push that took a while":          latePush,
		"a look beside one that takes long": lookBesideSlowLook,
		"what one process writes":           ownWrites,
		"what several processes write":      severalWrite,
		"two trims of a history":            trimsBeside,
		"a trim beside new settings":        trimBesideSettings,
		"a history that is unset":           historyUnset,
		"a trim beside a locked row":        trimBesideLocked,
		"a listed ack in a transaction":     ackInTransaction,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, bed(t))
		})
	}
}
