//go:build linux

package disk

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/bench/scenario"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// behind is an engine that does no more with a push than to append it to a bare log: what can be
// reached at most behind a client of tarry. All else it does as one that has nothing.
type behind struct {
	engine.Engine
	log  *bareLog
	last atomic.Uint64
}

// openBehind opens a bare log behind a client.
func openBehind(dir string) (scenario.System, error) {
	log, err := openBare(dir)
	if err != nil {
		return nil, err
	}
	e := &behind{Engine: memengine.New(nil), log: log}
	return &closing{scenario.Tarry(tarry.New(e, nil)), log}, nil
}

// Capabilities has the client put calls together as it does before the disk engine.
func (e *behind) Capabilities() engine.Capabilities {
	c := e.Engine.Capabilities()
	c.Coalesce, c.Lanes = 256, 4
	return c
}

func (e *behind) Push(_ context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	results := make([]engine.PushResult, len(msgs))
	now := time.Now()
	err := e.log.append(len(msgs), func(b []byte, i int) []byte {
		m := &msgs[i]
		due := m.Due.Resolve(now)
		results[i] = engine.PushResult{Outcome: engine.Created, ID: engine.ID(e.last.Add(1)), Due: time.UnixMilli(due).UTC(), State: engine.Scheduled}
		return appendRecord(b, due, m.Key, m.Body)
	})
	return results, err
}

// closing is a system that is closed with its log.
type closing struct {
	scenario.System
	log *bareLog
}

func (s *closing) Close() error {
	err := s.System.Close()
	if lerr := s.log.Close(); err == nil {
		err = lerr
	}
	return err
}
