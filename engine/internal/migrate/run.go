package migrate

import (
	"context"
	"database/sql"
	"fmt"
)

// Up applies the migrations that a store lacks and returns their versions. Concurrent calls
// wait for each other. After an error, the returned versions are applied.
func (s *Set) Up(ctx context.Context, db *sql.DB) (done []int64, err error) {
	err = s.locked(ctx, db, func(conn *sql.Conn, has int64) error {
		if has == 0 {
			if _, err := conn.ExecContext(ctx, s.names.Replace(s.dialect.create)); err != nil {
				return fmt.Errorf("the table of versions, %s: %w", s.names.Replace("{{migrations}}"), err)
			}
		}
		for v := has + 1; v <= s.Latest(); v++ {
			m := s.all[v-1]
			if err := s.step(ctx, conn, m, "up", m.up); err != nil {
				return err
			}
			done = append(done, v)
		}
		return nil
	})
	return done, err
}

// Down reverts the migrations after a version, the latest first, with the data in what they
// created. It returns their versions. Version 0 leaves only the table of versions.
func (s *Set) Down(ctx context.Context, db *sql.DB, to int64) (done []int64, err error) {
	err = s.locked(ctx, db, func(conn *sql.Conn, has int64) error {
		for v := has; v > max(0, to); v-- {
			m := s.all[v-1]
			if err := s.step(ctx, conn, m, "down", m.down); err != nil {
				return err
			}
			done = append(done, v)
		}
		return nil
	})
	return done, err
}

// step runs a migration in one direction.
func (s *Set) step(ctx context.Context, conn *sql.Conn, m migration, direction, text string) error {
	run, commit := conn.ExecContext, func() error { return nil }
	if m.inTx {
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // nothing is left to roll back after a commit
		run, commit = tx.ExecContext, tx.Commit
	}
	for i, statement := range statements(text) {
		if _, err := run(ctx, statement); err != nil {
			left := "this migration changed nothing"
			if i > 0 && !s.atomic(m) {
				left = fmt.Sprintf("%s has kept the changes of the statements before it: mend the cause, and run tarry migrate %s again", s.dialect.dbms, direction)
			}
			return fmt.Errorf("migration %s, %s: statement %d, %q: %w; %s", m.file, direction, i+1, statement, err, left)
		}
	}
	if err := commit(); err != nil {
		return fmt.Errorf("migration %s, %s: commit: %w", m.file, direction, err)
	}
	return nil
}
