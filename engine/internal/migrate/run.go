package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/pressly/goose/v3"
)

// Up applies the migrations that a store lacks, and returns their versions. Several may
// do so at once: one works while the others wait. After an error those that were
// returned are applied.
func (s *Set) Up(ctx context.Context, db *sql.DB) (done []int64, err error) {
	if err := s.prepare(ctx, db); err != nil {
		return nil, err
	}
	return s.run(ctx, db, func(p *goose.Provider) (*goose.MigrationResult, error) { return p.UpByOne(ctx) })
}

// Down takes back the migrations of a store that came after a version, the latest first,
// with the data in what they made, and returns their versions. Version 0 leaves only the
// table of the versions.
func (s *Set) Down(ctx context.Context, db *sql.DB, to int64) (done []int64, err error) {
	return s.run(ctx, db, func(p *goose.Provider) (*goose.MigrationResult, error) {
		has, err := s.Version(ctx, db)
		if err != nil {
			return nil, err
		}
		if has <= max(0, to) {
			return nil, goose.ErrNoNextVersion
		}
		return p.Down(ctx)
	})
}

// run takes steps until there are no more.
func (s *Set) run(ctx context.Context, db *sql.DB, step func(*goose.Provider) (*goose.MigrationResult, error)) (done []int64, err error) {
	has, err := s.Version(ctx, db)
	if err == nil {
		err = s.known(has)
	}
	if err != nil {
		return nil, err
	}
	at := &progress{}
	p, err := goose.NewProvider(goose.DialectCustom, db, rendered{s},
		goose.WithStore(versions{Set: s, progress: at}),
		goose.WithSessionLocker(locker{s}),
		goose.WithDisableGlobalRegistry(true),
		goose.WithVerbose(true),
		goose.WithSlog(slog.New(at)))
	if err != nil {
		return nil, err
	}
	for {
		*at = progress{}
		r, err := step(p)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return done, nil
		}
		if err != nil {
			return done, s.failed(at, err)
		}
		done = append(done, r.Source.Version)
	}
}

// failed says of a step that failed what is left of it.
func (s *Set) failed(at *progress, err error) error {
	var partial *goose.PartialError
	if !errors.As(err, &partial) {
		return err
	}
	version := partial.Failed.Source.Version
	m := s.all[version-1]
	where := fmt.Sprintf("migration %s, %s: statement %d, %q", m.file, partial.Failed.Direction, at.count, at.statement)
	switch {
	case m.atomic:
		return fmt.Errorf("%s: %w; nothing of this migration is left", where, partial.Err)
	case at.count <= 1:
		return fmt.Errorf("%s: %w; no statement of this migration is done", where, partial.Err)
	}
	return fmt.Errorf("%s: %w; %s has kept what the statements before it did: mend the cause, and run tarry migrate %s again",
		where, partial.Err, s.dialect.dbms, partial.Failed.Direction)
}

// prepare makes the table of the versions. goose would do so without its lock, too.
func (s *Set) prepare(ctx context.Context, db *sql.DB) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	v := versions{Set: s, progress: &progress{}}
	if exists, err := v.TableExists(ctx, conn); err != nil || exists {
		return s.unread(err)
	}
	l := locker{s}
	if err := l.SessionLock(ctx, conn); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.SessionUnlock(context.WithoutCancel(ctx), conn)) }()
	if exists, err := v.TableExists(ctx, conn); err != nil || exists {
		return s.unread(err)
	}
	if err := v.CreateVersionTable(ctx, conn); err != nil {
		return fmt.Errorf("the table of the versions, %s: %w", v.Tablename(), err)
	}
	return nil
}
