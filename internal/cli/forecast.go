package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

func (p *Program) forecastCommand() *cobra.Command {
	step, span := time.Hour, 48*time.Hour
	cmd := p.client(showEmpty, &cobra.Command{
		Use:   "forecast QUEUE",
		Short: "Show how many messages fall due when",
		Long: `Forecast counts the scheduled and ready messages by due time, step by step from this minute
on. Messages due before this minute are counted as overdue. The table leaves out empty
steps; --json has them all.`,
		Example: "  tarry forecast order.unpaid --step 10m --span 6h",
		Args:    exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		f, err := c.Forecast(ctx, args[0], step, span)
		if err != nil {
			return err
		}
		total, peak := sumOf(f.Buckets)
		most := max(peak.Count, f.Overdue)
		o := p.printer()
		o.head("FROM", "COUNT")
		if p.json || f.Overdue > 0 {
			o.row(asAPI(func(to []byte) []byte { return fmt.Appendf(to, `{"overdue":%d}`, f.Overdue) }), "overdue", f.Overdue, bar(f.Overdue, most))
		}
		for _, b := range f.Buckets {
			if !p.json && b.Count == 0 {
				continue
			}
			o.row(asAPI(func(to []byte) []byte { return wire.Bucket.Append(to, &b) }), formatTime(b.From), b.Count, bar(b.Count, most))
		}
		o.say("%d within %s from this minute on; %d overdue", total, tarry.FormatDuration(span), f.Overdue)
		return o.flush()
	})
	cmd.Flags().Var(durationFlag(&step), "step", "length of a step, whole minutes")
	cmd.Flags().Var(durationFlag(&span), "span", "how far to look ahead, whole steps")
	return cmd
}

// bar draws n of most as up to 40 characters.
func bar(n, most int64) string {
	return strings.Repeat("#", int((n*40+most-1)/max(most, 1)))
}

// sumOf returns the sum of all steps of a forecast, and the step with the most messages.
func sumOf(buckets []tarry.Bucket) (sum int64, most tarry.Bucket) {
	for _, b := range buckets {
		if sum += b.Count; b.Count > most.Count {
			most = b
		}
	}
	return sum, most
}
