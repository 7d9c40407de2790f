package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// MaxName is the most bytes in the name of a store.
const MaxName = 40

// Set is the migrations of one store. It is safe for concurrent use.
type Set struct {
	dialect Dialect
	store   string
	names   *strings.Replacer // fills in the names of a statement or file
	all     []migration       // by version, from 1
}

// migration is one file, as the store needs it.
type migration struct {
	file     string
	up, down string // with the statement that records or removes the version
	inTx     bool
}

// The lines that divide a file.
const (
	lineUp   = "\n-- migrate: up\n"
	lineDown = "\n-- migrate: down\n"
	lineNoTx = "\n-- migrate: no transaction\n"
)

// New returns the migrations in files for the store with this name. The name has letters,
// digits and underscores, at most MaxName. New fails with engine.ErrInvalid if it has others,
// or if a file is malformed.
func New(d Dialect, store string, files fs.FS) (*Set, error) {
	s, err := newSet(d, store, files)
	if err != nil {
		return nil, engine.Invalid("open", engine.Ref{}, "%v", err)
	}
	return s, nil
}

func newSet(d Dialect, store string, files fs.FS) (*Set, error) {
	if err := checkName(store); err != nil {
		return nil, err
	}
	before := strings.ReplaceAll(d.before, "{{.}}", store)
	s := &Set{dialect: d, store: store, names: strings.NewReplacer("{{.}}", store, "{{", before, "}}", d.after)}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("there are no migrations")
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err == nil {
			err = s.add(name, string(text))
		}
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
	}
	return s, nil
}

// checkName returns an error unless store is a valid name of a store.
func checkName(store string) error {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
	}
	if store == "" || len(store) > MaxName || strings.ContainsFunc(store, func(r rune) bool { return !ok(r) }) {
		return fmt.Errorf("the store's name %q: it has to have 1 to %d letters a to z and A to Z, digits and underscores", store, MaxName)
	}
	return nil
}

// add adds the file of the next version.
func (s *Set) add(file, text string) error {
	version := s.Latest() + 1
	if !strings.HasPrefix(file, fmt.Sprintf("%05d_", version)) {
		return fmt.Errorf("it should have the number %05d before an underscore", version)
	}
	head, rest, _ := strings.Cut("\n"+s.names.Replace(text), lineUp)
	up, down, _ := strings.Cut(rest, lineDown)
	up, down = strings.TrimSpace(up), strings.TrimSpace(down)
	if !strings.HasSuffix(up, ";") || !strings.HasSuffix(down, ";") {
		return fmt.Errorf("it lacks a line %q, a later line %q, or a semicolon at the end of either part", strings.TrimSpace(lineUp), strings.TrimSpace(lineDown))
	}
	with := func(part, statement string) string {
		return part + "\n" + fmt.Sprintf(s.names.Replace(statement), version) + ";\n"
	}
	s.all = append(s.all, migration{
		file: file,
		up:   with(up, record),
		down: with(down, forget),
		inTx: !strings.Contains(head+"\n", lineNoTx),
	})
	return nil
}

// Latest is the version of the last migration.
func (s *Set) Latest() int64 { return int64(len(s.all)) }

// atomic reports whether a failed migration changes nothing.
func (s *Set) atomic(m migration) bool { return m.inTx && s.dialect.atomic }

// Print returns the SQL that Up would run for a store at a version: for operators that may
// not run Up, or want to read it first. Version 0 is no store.
func (s *Set) Print(from int64) string {
	var b strings.Builder
	if from <= 0 {
		fmt.Fprintf(&b, "-- The table of versions.\n%s;\n", s.names.Replace(s.dialect.create))
	}
	for v := max(0, from) + 1; v <= s.Latest(); v++ {
		m := s.all[v-1]
		text := m.up
		if s.atomic(m) {
			text = "BEGIN;\n" + text + "COMMIT;\n"
		}
		fmt.Fprintf(&b, "\n-- Version %d: %s\n%s", v, m.file, text)
	}
	return b.String()
}

// statements splits the text of a migration and leaves out its comments.
func statements(text string) []string {
	var all []string
	var b strings.Builder
	quoted := false // between two $$
	for line := range strings.Lines(text) {
		if !quoted && strings.HasPrefix(line, "--") {
			continue
		}
		b.WriteString(line)
		quoted = quoted != (strings.Count(line, "$$")%2 == 1)
		if !quoted && strings.HasSuffix(line, ";\n") {
			all = append(all, strings.TrimSpace(b.String()))
			b.Reset()
		}
	}
	return all
}
