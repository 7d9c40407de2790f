package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server"
)

func (p *Program) workersCommand() *cobra.Command {
	return p.client(showEmpty, &cobra.Command{
		Use:   "workers",
		Short: "List the workers and what they do",
		Long: `Workers lists who leased from the server in the last 5 minutes, or holds leases. Handled
counts acks, failed retries and buries. A worker "elsewhere" holds leases that another server
of the same store gave it: only its name and leases are known. With --store only workers
that hold leases are listed.`,
		Example: "  tarry workers\n  tarry workers --json",
		Args:    exactly(),
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, _ []string) error {
		all, err := workersOf(ctx, c)
		if err != nil {
			return err
		}
		o := p.printer()
		o.head("NAME", "ADDRESS", "LEASED", "HANDLED", "FAILED", "SINCE", "SEEN", "VERSION", "QUEUES")
		for _, w := range all.Workers {
			queues, at, handled, failed := strings.Join(w.Queues, " "), orDash(w.Address), fmt.Sprint(w.Handled), fmt.Sprint(w.Failed)
			if w.More {
				queues += " …"
			}
			if w.Elsewhere {
				at = "elsewhere"
			}
			if w.Since.IsZero() {
				handled, failed = "-", "-"
			}
			o.row(w, orDash(w.Name), at, w.Leased, handled, failed,
				orDash(away(w.Since.Time, p.Now())), orDash(away(w.Seen.Time, p.Now())), orDash(w.Version), queues)
		}
		if err := o.flush(); err != nil {
			return err
		}
		if all.More {
			fmt.Fprintln(p.Stderr, "there may be more")
		}
		return nil
	})
}

// workersOf asks the server for its workers, or finds those that hold leases in a directly
// opened store.
func workersOf(ctx context.Context, c *tarry.Client) (all wire.Workers, err error) {
	if e, ok := c.Engine().(*httpengine.Engine); ok {
		return fetchJSON[wire.Workers](ctx, e, "/v1/workers", "")
	}
	all.Workers, all.More, err = server.WorkersOf(ctx, c)
	return all, err
}

// fetchJSON asks a server for what engines have no call for.
func fetchJSON[T any](ctx context.Context, e *httpengine.Engine, path, query string) (v T, err error) {
	answer, err := e.Fetch(ctx, path, query)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return v, &engine.Error{Op: "read", Err: engine.ErrUnavailable, Hint: "what the server answers to GET " + path + " makes no sense: " + err.Error()}
	}
	return v, nil
}
