package cli

import (
	"cmp"
	"context"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server"
)

type problem = server.Problem

// about returns the message of a problem, after the queue if there is one.
func about(p *problem) string {
	if p.Queue == "" {
		return p.Message
	}
	return p.Queue + ": " + p.Message
}

// finder finds problems, for tarry status and tarry top.
type finder struct {
	late time.Duration // messages ready for at least this long are late
	now  time.Time

	Problems []problem `json:"problems"`
	unshown  bool      // there are more problems
}

// readiness asks whether the store is ready. A store that is not ready is a problem but no
// error, unless ctx has ended.
func (f *finder) readiness(ctx context.Context, c *tarry.Client) (ready bool, err error) {
	err = c.Ready(ctx)
	if err == nil || ctx.Err() != nil {
		return err == nil, err
	}
	told := wire.Shown(err)
	f.Problems = append(f.Problems, problem{Problem: "not_ready", Message: told.Message, Hint: cmp.Or(told.Hint, "see to what is behind the engine, and to the server's log")})
	return false, nil
}

// find asks the server for problems, or finds those of a directly opened store.
func (f *finder) find(ctx context.Context, c *tarry.Client, rows []*queueRow) error {
	e, ok := c.Engine().(*httpengine.Engine)
	if !ok {
		scan := server.Scan{Late: f.late, Now: f.now}
		found, err := scan.Problems(ctx, c, func(yield func(tarry.QueueInfo, error) bool) {
			for _, r := range rows {
				if !yield(r.QueueInfo, nil) {
					return
				}
			}
		})
		f.Problems = append(f.Problems, found...)
		return err
	}
	told, err := fetchJSON[wire.Problems](ctx, e, "/v1/problems", wire.ProblemsQuery(f.late))
	if err != nil {
		return err
	}
	f.Problems, f.unshown = append(f.Problems, told.Problems...), told.More
	return nil
}

// count sets how many problems each queue has.
func (f *finder) count(rows []*queueRow) {
	of := make(map[string]int)
	for _, p := range f.Problems {
		of[p.Queue]++
	}
	for _, r := range rows {
		r.bad = of[r.Queue]
	}
}

// printProblems writes problems for people.
func printProblems(o *printer, f *finder) {
	if len(f.Problems) == 0 {
		o.say("no problems")
	}
	for _, x := range f.Problems {
		o.say("! %s\n  %s", oneCell(about(&x)), x.Hint)
	}
	if f.unshown {
		o.say("! there may be more problems than these")
	}
}
