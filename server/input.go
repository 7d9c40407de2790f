package server

import (
	"sync"

	"github.com/tarryhq/tarry/internal/wire"
)

// input holds the JSON of one request while it is read, and its buffers.
type input struct{ wire.Reader }

// Inputs are pooled, those with large buffers apart. Otherwise a small request could hold much
// of the budget.
var (
	inputs      = sync.Pool{New: func() any { return new(input) }}
	largeInputs = sync.Pool{New: func() any { return new(input) }}
)

// inputFor returns an input for a request that declares a body of said bytes.
func inputFor(said int64) *input {
	if said <= smallInput {
		return inputs.Get().(*input)
	}
	return largeInputs.Get().(*input)
}

// The largest buffers kept for the next requests.
const (
	smallInput   = 16 << 10
	maxPooled    = 1 << 20
	pooledAnswer = 64 << 10
)

// free returns the buffers to the pool. No body of this request may be used afterwards.
func (in *input) free() {
	switch size := in.Held(); {
	case size <= smallInput:
		inputs.Put(in)
	case size <= maxPooled:
		largeInputs.Put(in)
	}
}
