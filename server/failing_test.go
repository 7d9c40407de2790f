package server_test

import (
	"context"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// failing is an engine whose pushes all fail.
type failing struct {
	*memengine.Engine
	err error
}

func (f failing) Push(context.Context, []engine.Message) ([]engine.PushResult, error) {
	return nil, f.err
}
