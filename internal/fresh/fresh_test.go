package fresh

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// text is a Value of a file that holds anything but "bad".
func text(t *testing.T, path string) (*Value[string], *[]string) {
	t.Helper()
	var told []string
	v, err := New(func() (string, error) {
		b, err := os.ReadFile(path)
		if string(b) == "bad" {
			err = errors.New("it is bad")
		}
		return string(b), err
	}, func(err error) { told = append(told, err.Error()) }, path)
	if err != nil {
		t.Fatal(err)
	}
	return v, &told
}

// replace puts a new file in the place of one.
func replace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestValueFollowsItsFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		replace(t, path, "one")
		v, told := text(t, path)
		is := func(want string) {
			t.Helper()
			if got := v.Get(); got != want {
				t.Errorf("it is %q, not %q", got, want)
			}
		}
		time.Sleep(Interval)
		is("one")
		replace(t, path, "two")
		is("one") // it was looked at just now
		time.Sleep(Interval)
		is("two")
		replace(t, path, "six") // as long as before
		v.Refresh()
		is("six")
		for range 3 {
			replace(t, path, "bad")
			time.Sleep(Interval)
			is("six")
		}
		_ = os.Remove(path)
		time.Sleep(Interval)
		is("six")
		if len(*told) != 2 || (*told)[0] != "it is bad" {
			t.Errorf("told was %q", *told)
		}
		replace(t, path, "ten")
		time.Sleep(Interval)
		is("ten")
		replace(t, path, "bad")
		v.Refresh()
		if len(*told) != 3 {
			t.Errorf("after it was good again it was not told: %q", *told)
		}
	})
}

func TestValueOfNothing(t *testing.T) {
	_, err := New(func() (int, error) { return 1, nil }, nil, filepath.Join(t.TempDir(), "none"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
