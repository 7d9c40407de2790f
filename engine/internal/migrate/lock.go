package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/internal/duration"
)

// lockPause is the time between two attempts.
const lockPause = 50 * time.Millisecond

// locked calls do with a connection that holds the store's lock, and the store's version.
// The lock belongs to the session: it ends with the connection.
func (s *Set) locked(ctx context.Context, db *sql.DB, do func(conn *sql.Conn, has int64) error) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := s.lock(ctx, conn); err != nil {
		return err
	}
	defer func() {
		// After another error, the connection and its lock may be lost.
		if unlocked := s.unlock(context.WithoutCancel(ctx), conn); err == nil {
			err = unlocked
		}
	}()
	has, err := s.Version(ctx, conn)
	if err == nil {
		err = s.checkKnown(has)
	}
	if err != nil {
		return err
	}
	return do(conn, has)
}

// lock waits for the lock until ctx ends.
func (s *Set) lock(ctx context.Context, conn *sql.Conn) error {
	for {
		var locked bool
		if err := conn.QueryRowContext(ctx, s.dialect.lock, s.store).Scan(&locked); err != nil {
			return fmt.Errorf("the lock for migrating: %w", err)
		}
		if locked {
			return nil
		}
		if !duration.Sleep(ctx, lockPause) {
			return fmt.Errorf("another process is migrating the store: %w", ctx.Err())
		}
	}
}

func (s *Set) unlock(ctx context.Context, conn *sql.Conn) error {
	var unlocked bool
	err := conn.QueryRowContext(ctx, s.dialect.unlock, s.store).Scan(&unlocked)
	if err == nil && !unlocked {
		err = errors.New("the session did not hold it; connect to the server itself, not through a PgBouncer in transaction mode")
	}
	if err != nil {
		return fmt.Errorf("the lock for migrating: %w", err)
	}
	return nil
}
