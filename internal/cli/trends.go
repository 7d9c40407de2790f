package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/wire"
)

// trendsOf returns the trend of each queue over a span, step by step; kept is false if no
// server keeps trends.
func trendsOf(ctx context.Context, c *tarry.Client, span, step time.Duration) (all map[string]*wire.QueueTrend, kept bool, err error) {
	e, ok := c.Engine().(*httpengine.Engine)
	if !ok {
		return nil, false, nil
	}
	all = make(map[string]*wire.QueueTrend)
	for after := ""; ; {
		answer, err := e.Fetch(ctx, "/v1/trends", wire.TrendsQuery(span, step, after, engine.MaxPage))
		if errors.Is(err, tarry.ErrUnsupported) || errors.Is(err, tarry.ErrNotFound) {
			return nil, false, nil // trends are off, or the server is older
		}
		if err != nil {
			return nil, false, err
		}
		var page wire.Trends
		if err := json.Unmarshal(answer, &page); err != nil {
			return nil, false, senseless("of the last minutes", err)
		}
		for i := range page.Queues {
			all[page.Queues[i].Queue] = &page.Queues[i]
		}
		if after = page.Next; after == "" {
			return all, true, nil
		}
	}
}

// senseless returns the error for an unreadable answer.
func senseless(of string, err error) error {
	return &engine.Error{Op: "read", Err: engine.ErrUnavailable, Hint: "what the server tells " + of + " makes no sense: " + err.Error()}
}

// latenessKnown reports whether any messages were handed out, so that lateness is known.
func latenessKnown(t *wire.Times) bool {
	return t.Count > 0 && t.P50 != nil && t.P99 != nil && t.Max != nil
}

// milliseconds converts a number from the API to a duration.
func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// brief formats a lateness for people.
func brief(ms *float64) string { return short(milliseconds(*ms)) }

// short formats a duration, not negative, in two to four digits.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", d.Seconds()*1000)
	case d < time.Second:
		d = d.Round(time.Millisecond)
	case d < time.Minute:
		d = d.Round(100 * time.Millisecond)
	case d < time.Hour:
		d = d.Round(time.Second)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return tarry.FormatDuration(d)
}
