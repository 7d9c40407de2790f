package tarry

import (
	"context"
	"fmt"
	"reflect"
)

// OnlyIf makes the delay dynamic: when a message is due, guard says whether the
// reason for it still holds. On true it is handled; on false it is dropped, which
// the observer sees as Dropped; an error counts as one of the handler. guard gets
// the handler's context and time. Several guards are asked in order.
//
// T must be the type of the topic that Handle or Claim is called with; they panic
// when it is not.
func OnlyIf[T any](guard func(ctx context.Context, m *Message[T]) (bool, error)) HandleOption {
	if guard == nil {
		panic("tarry: OnlyIf: the guard is nil")
	}
	return handleOption(func(h *handling) { h.guards = append(h.guards, guard) })
}

type guardOf[T any] = func(ctx context.Context, m *Message[T]) (bool, error)

// guardsOf returns the guards of a handling, which must be of its topic's type.
func guardsOf[T any](h *handling) []guardOf[T] {
	var typed []guardOf[T]
	for _, g := range h.guards {
		guard, ok := g.(guardOf[T])
		if !ok {
			panic(fmt.Sprintf("tarry: queue %s: the topic's bodies are of type %s, so OnlyIf needs a %T, not a %T",
				h.queue, reflect.TypeFor[T](), guard, g))
		}
		typed = append(typed, guard)
	}
	return typed
}
