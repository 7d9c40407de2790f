package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// locker lets one at a time migrate a store, as long as its connection lasts.
type locker struct{ *Set }

// lockPause is how long to wait between two attempts.
const lockPause = 50 * time.Millisecond

// SessionLock implements lock.SessionLocker of goose. It waits for as long as ctx lets it.
func (l locker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	for {
		var locked bool
		if err := conn.QueryRowContext(ctx, l.dialect.lock, l.store).Scan(&locked); err != nil {
			return fmt.Errorf("the lock for migrating: %w", err)
		}
		if locked {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another is migrating the store: %w", ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

// SessionUnlock implements lock.SessionLocker of goose.
func (l locker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	var unlocked bool
	err := conn.QueryRowContext(ctx, l.dialect.unlock, l.store).Scan(&unlocked)
	if err == nil && !unlocked {
		err = errors.New("it was not ours; migrate by a connection to the server itself, not through a PgBouncer in transaction mode")
	}
	if err != nil {
		return fmt.Errorf("the lock for migrating: %w", err)
	}
	return nil
}
