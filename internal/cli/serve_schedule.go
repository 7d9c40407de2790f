package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tarryhq/tarry"
)

// runSchedules runs the schedules of a store, if its engine has any, until end is called. end
// waits for those that fire.
func runSchedules(c *tarry.Client, logger *slog.Logger) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := tarry.NewWorker(c, &tarry.WorkerConfig{Schedules: true, Logger: logger}).Run(ctx)
		if err != nil && !errors.Is(err, tarry.ErrUnsupported) {
			logger.Error("schedules no longer fire", "error", err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
