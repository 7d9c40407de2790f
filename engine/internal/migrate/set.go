package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/template"

	"github.com/pressly/goose/v3"
)

// MaxName is how many bytes the name of a store may have.
const MaxName = 40

// Set is the migrations of one store. It may be used by several goroutines.
type Set struct {
	dialect Dialect
	store   string
	files   fs.FS
	all     []migration // by version, from 1
}

// migration is one file, as the store needs it.
type migration struct {
	file   string
	text   string
	atomic bool // it is run in a transaction, which takes all of it back
}

// New returns the migrations in files for the store with a name, of letters, digits and
// underscores, at most MaxName. It fails if a file is not as the package says.
func New(d Dialect, store string, files fs.FS) (*Set, error) {
	if err := CheckName(store); err != nil {
		return nil, err
	}
	s := &Set{dialect: d, store: store, files: files}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("there are no migrations")
	}
	for i, name := range names {
		m, err := s.read(name)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		if v, err := goose.NumericComponent(name); err != nil || v != int64(i+1) {
			return nil, fmt.Errorf("migration %s: it should have the number %05d before an underscore", name, i+1)
		}
		s.all = append(s.all, m)
	}
	return s, nil
}

// CheckName refuses what cannot name a store.
func CheckName(store string) error {
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
	}
	if store == "" || len(store) > MaxName || strings.TrimFunc(store, ok) != "" || strings.ContainsFunc(store, func(r rune) bool { return !ok(r) }) {
		return fmt.Errorf("the store's name %q: it has to have 1 to %d letters a to z and A to Z, digits and underscores", store, MaxName)
	}
	return nil
}

// Latest is the version that the last migration brings.
func (s *Set) Latest() int64 { return int64(len(s.all)) }

func (s *Set) read(name string) (migration, error) {
	text, err := fs.ReadFile(s.files, name)
	if err != nil {
		return migration{}, err
	}
	m := migration{file: name}
	if m.text, err = s.render(string(text)); err != nil {
		return migration{}, err
	}
	m.atomic = s.dialect.atomic && !strings.Contains(m.text, "\n"+noTransaction) && !strings.HasPrefix(m.text, noTransaction)
	switch {
	case !strings.Contains(m.text, upBegin) || !strings.Contains(m.text, downBegin):
		return migration{}, fmt.Errorf("it lacks a line %q or %q", upBegin, downBegin)
	case !s.dialect.atomic && strings.Contains(m.text, compound):
		return migration{}, fmt.Errorf("it has a line %q, and cannot be printed for %s", compound, s.dialect.dbms)
	}
	return m, nil
}

// What goose looks for at the beginning of a line.
const (
	upBegin       = "-- +goose Up"
	downBegin     = "-- +goose Down"
	compound      = "-- +goose StatementBegin"
	noTransaction = "-- +goose NO TRANSACTION"
	annotation    = "-- +goose"
)

// render fills in the names of a statement or file.
func (s *Set) render(text string) (string, error) {
	t, err := template.New("").Funcs(template.FuncMap{
		"name": func(name string) string { return s.dialect.quote(s.store, name) },
	}).Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, s.store)
	return b.String(), err
}

// statement is one of the dialect's own, which renders.
func (s *Set) statement(text string) string {
	text, err := s.render(text)
	if err != nil {
		panic(err) // the dialects are written here
	}
	return text
}

// Print returns the SQL that brings a store from a version to the latest, with all that
// Up does: for operators that may not run Up, or want to read it first. Version 0 is no store.
func (s *Set) Print(from int64) string {
	var b strings.Builder
	if from <= 0 {
		fmt.Fprintf(&b, "-- The table of the versions.\n%s;\n", s.statement(s.dialect.create))
	}
	record := strings.NewReplacer("$1", "%d", "?", "%d").Replace(s.statement(s.dialect.record))
	for i, m := range s.all[min(max(0, from), s.Latest()):] {
		version := max(0, from) + int64(i) + 1
		fmt.Fprintf(&b, "\n-- Version %d: %s\n", version, m.file)
		if m.atomic {
			b.WriteString("BEGIN;\n")
		}
		b.WriteString(m.up())
		fmt.Fprintf(&b, record+";\n", version)
		if m.atomic {
			b.WriteString("COMMIT;\n")
		}
	}
	return b.String()
}

// up is the part of a migration that goes up, without the annotations.
func (m migration) up() string {
	var b strings.Builder
	in := false
	for line := range strings.Lines(m.text) {
		switch {
		case strings.HasPrefix(line, upBegin):
			in = true
		case strings.HasPrefix(line, downBegin):
			in = false
		case in && !strings.HasPrefix(line, annotation) && strings.TrimSpace(line) != "":
			b.WriteString(line)
		}
	}
	return b.String()
}
