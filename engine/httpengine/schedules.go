package httpengine

import (
	"context"
	"net/http"
	"net/url"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schedule"
	"github.com/tarryhq/tarry/internal/wire"
)

// Schedules returns the schedules of the server, for package tarry.
func (e *Engine) Schedules() schedule.Keeper { return schedules{e} }

// schedules are the schedules of a server. The server checks the rights on the queues
// that they push to; the caller needs none on the queue that holds them.
type schedules struct{ e *Engine }

func (s schedules) call(method, name, also string, body []byte) call {
	return call{op: "schedule", ref: engine.Ref{Queue: schedule.Queue, Key: name}, method: method, path: wire.SchedulePath(name) + also, body: body}
}

func (s schedules) ask(ctx context.Context, c call) (schedule.Info, error) {
	got, err := ask(ctx, s.e, c, wire.StoredSchedule)
	return got.Stored(), err
}

func (s schedules) Get(ctx context.Context, name string) (schedule.Info, error) {
	return s.ask(ctx, s.call(http.MethodGet, name, "", nil))
}

func (s schedules) Set(ctx context.Context, want schedule.Schedule, revision string) (schedule.Info, error) {
	body := wire.SettingSchedule.Append(nil, &wire.Schedule{Info: schedule.Info{Schedule: want, Revision: revision}})
	return s.ask(ctx, s.call(http.MethodPut, want.Name, "", body))
}

func (s schedules) Remove(ctx context.Context, name, revision string) error {
	c := s.call(http.MethodDelete, name, "", nil)
	if revision != "" {
		c.query = url.Values{"revision": {revision}}.Encode()
	}
	b, err := s.e.do(ctx, c)
	if err == nil {
		b.free()
	}
	return err
}

func (s schedules) Pause(ctx context.Context, name string) (schedule.Info, error) {
	return s.ask(ctx, s.call(http.MethodPost, name, "/pause", nil))
}

func (s schedules) Resume(ctx context.Context, name string) (schedule.Info, error) {
	return s.ask(ctx, s.call(http.MethodPost, name, "/resume", nil))
}

func (s schedules) Trigger(ctx context.Context, name string) (schedule.Run, error) {
	got, err := ask(ctx, s.e, s.call(http.MethodPost, name, "/trigger", nil), wire.ScheduleRun)
	return got.Run, err
}

func (s schedules) List(ctx context.Context, after string, limit int) ([]schedule.Info, string, error) {
	page, err := ask(ctx, s.e, call{op: "schedule", method: http.MethodGet, path: "/v1/schedules", query: wire.PageQuery.FormatQuery(&wire.PageAsked{After: after, Limit: limit})}, wire.SchedulePage)
	var all []schedule.Info
	for i := range page.Schedules {
		all = append(all, page.Schedules[i].Stored())
	}
	return all, page.Next, err
}
