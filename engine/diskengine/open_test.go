package diskengine_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
)

// TestOpenRefuses opens what is no store: it is refused with one line, and left as it is.
func TestOpenRefuses(t *testing.T) {
	inUse := t.TempDir()
	e, err := diskengine.Open(inUse, &diskengine.Config{Logger: quiet, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	other := directory(t, map[string]string{"notes.txt": "milk"})
	for name, c := range map[string]struct {
		dir  string
		is   error
		says string
	}{
		"a directory of something else": {other, engine.ErrInvalid, "it holds notes.txt; name an empty directory or a new one"},
		"a log without a manifest":      {directory(t, map[string]string{"log/1.log": "milk"}), engine.ErrDamaged, "is missing, and log is not empty"},
		"a file":                        {filepath.Join(other, "notes.txt"), engine.ErrInvalid, "notes.txt must be a directory"},
		"a manifest that is none":       {directory(t, map[string]string{"MANIFEST": "milk"}), engine.ErrDamaged, "is damaged"},
		"a store in use":                {inUse, engine.ErrUnavailable, "pid "},
	} {
		t.Run(name, func(t *testing.T) {
			before := files(t, c.dir)
			e, err := diskengine.Open(c.dir, &diskengine.Config{Logger: quiet, BallastBytes: -1})
			if err == nil {
				_ = e.Close()
			}
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "not reachable") {
				t.Errorf("%v; want %q", err, c.says)
			}
			if after := files(t, c.dir); c.is == engine.ErrInvalid && !slices.Equal(after, before) {
				t.Errorf("it left %v of %v", after, before)
			}
		})
	}
	for what, err := range map[string]error{
		"check":   second(diskengine.Check(t.Context(), other, nil)),
		"salvage": second(diskengine.Salvage(t.Context(), other, filepath.Join(t.TempDir(), "new"), nil, nil)),
	} {
		if !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), "name the directory of a disk store") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second[A any](_ A, err error) error { return err }

// directory makes one with such files.
func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// files lists the names below a directory, each with what the file holds.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all = append(all, name)
			return err
		}
		text, err := os.ReadFile(name)
		all = append(all, name+" "+string(text))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
