package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tarryhq/tarry"
)

// A store is a directory with the messages of a replay, unless a database has them, its
// journal and nothing else.
type store struct {
	clock   *clock
	client  *tarry.Client
	release func() error // closes what the messages are in
	journal *journal
	records []record // what the journal held
}

// The names in the directory.
const (
	messagesName = "messages"
	journalName  = "replay.log"
)

// errNotOurs is what a directory is that holds something else.
var errNotOurs = errors.New("the directory holds something that is not a replay's; name another --store")

// openStore opens the store in dir for the replay of in, or makes it; the messages are in
// the database of a URL, if that is not "". One process at a time can open what is all in
// dir: the engine sees to that, and so is opened before the journal.
func openStore(ctx context.Context, dir, messagesURL string, in *input) (*store, error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	messages := filepath.Join(dir, messagesName)
	_, statErr := os.Stat(messages)
	s := &store{clock: new(clock)}
	s.clock.set(in.start())
	var err error
	s.client, s.release, err = openMessages(ctx, messagesURL, messages, s.clock.now)
	if err != nil {
		return nil, err
	}
	s.journal, s.records, err = openJournal(filepath.Join(dir, journalName),
		header{Format: journalFormat, SHA256: in.sum, Orders: len(in.orders)})
	if err == nil && messagesURL == "" && len(s.records) > 0 && errors.Is(statErr, fs.ErrNotExist) {
		err = errors.Join(fmt.Errorf("the messages are missing in %s, which has a log; remove the store and replay again", dir), s.journal.close())
	}
	if err != nil {
		return nil, errors.Join(err, s.client.Close(), s.release())
	}
	return s, nil
}

// checkDir refuses a directory that is in use for something else.
func checkDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != messagesName && e.Name() != journalName {
			return fmt.Errorf("%s: %w", dir, errNotOurs)
		}
	}
	return nil
}

func (s *store) close() error {
	return errors.Join(s.client.Close(), s.release(), s.journal.close())
}
