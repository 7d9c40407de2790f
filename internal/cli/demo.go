package cli

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/demo"
)

func (p *Program) demoCommand() *cobra.Command {
	var s serveFlags
	var speed int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show tarry at work: a made-up shop in memory, and the dashboard",
		Long: `Demo serves the dashboard and the API on a made-up shop, until interrupted. Everything is
in memory, and nothing is left behind.

The shop cancels orders that are not paid within 30 minutes, gives five stars to rides that
nobody rates within 48 hours, and notifies merchants again when they fail. It runs 360 times
faster than real life, on the dashboard too: 30 minutes take 5 seconds, 48 hours 8 minutes. It
opens with four days of history, whose lateness is made up. It prints what happens to one order
in eight, by the shop's calendar.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if speed < 1 || speed > 3600 {
				return usagef("allowed are 1 to 3600", "--speed is %d", speed)
			}
			p.settings.file = configFile{} // its routes are for other messages
			shop := demo.New(speed)
			s.clock = shop.Now
			s.open = func(ctx context.Context, _ string, cfg *tarry.Config) (*tarry.Client, error) {
				c := tarry.New(memengine.New(&memengine.Config{Now: shop.Now, History: engine.History{Keep: 24 * time.Hour}}), cfg)
				if err := shop.Play(ctx, c); err != nil {
					return nil, closing(c, err)
				}
				return c, nil
			}
			s.shop = func(ctx context.Context, addr net.Addr) { p.runShop(ctx, shop, speed, addr) }
			return p.serve(cmd.Context(), &s)
		},
	}
	cmd.Flags().AddFlag(p.serveCommand(&s).Flags().Lookup("http"))
	cmd.Flags().IntVar(&speed, "speed", demo.Speed, "how many times faster than real life")
	s.store, s.drain, s.guard.insecure = "mem:", time.Second, true // nothing here is worth a token
	return cmd
}

// runShop prints where the dashboard is, and runs the shop until ctx ends. It prints what
// happens to some orders only: as much as people can read.
func (p *Program) runShop(ctx context.Context, shop *demo.Shop, speed int, addr net.Addr) {
	some := max(1, speed/45)
	half := (30 * time.Minute / time.Duration(speed)).Round(time.Millisecond)
	fmt.Fprintf(p.Stdout, `dashboard: http://%s/
A made-up shop, in memory, %d times faster than real life: 30 minutes take %s, 48 hours %s.
Ctrl-C ends it and leaves nothing behind. What happens to one order in %d, by the shop's calendar:

`, reachable(addr), speed, tarry.FormatDuration(half), tarry.FormatDuration(96*half), some)
	shop.Say = func(at time.Time, order int, what string) {
		if order%some == 0 {
			fmt.Fprintln(p.Stdout, at.Format("Mon 15:04"), what)
		}
	}
	if err := shop.Run(ctx); ctx.Err() == nil {
		fmt.Fprintln(p.Stderr, "tarry: the shop stopped:", err)
	}
}
