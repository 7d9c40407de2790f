package schedule

import "context"

// Keeper keeps schedules: a Store, or a server.
type Keeper interface {
	Get(ctx context.Context, name string) (Info, error)
	Set(ctx context.Context, want Schedule, revision string) (Info, error)
	Remove(ctx context.Context, name, revision string) error
	Pause(ctx context.Context, name string) (Info, error)
	Resume(ctx context.Context, name string) (Info, error)
	Trigger(ctx context.Context, name string) (Run, error)
	List(ctx context.Context, after string, limit int) (page []Info, next string, err error)
}

// Server is an engine that has a Keeper.
type Server interface{ Schedules() Keeper }
