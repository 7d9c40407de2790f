package secretfile

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
	v, err := NewValue(func() (string, error) {
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
		time.Sleep(CheckInterval)
		is("one")
		replace(t, path, "two")
		is("one") // it was looked at just now
		time.Sleep(CheckInterval)
		is("two")
		replace(t, path, "six") // as long as before
		v.Refresh()
		is("six")
		for range 3 {
			replace(t, path, "bad")
			time.Sleep(CheckInterval)
			is("six")
		}
		_ = os.Remove(path)
		time.Sleep(CheckInterval)
		is("six")
		if len(*told) != 2 || (*told)[0] != "it is bad" {
			t.Errorf("told was %q", *told)
		}
		replace(t, path, "ten")
		time.Sleep(CheckInterval)
		is("ten")
		replace(t, path, "bad")
		v.Refresh()
		if len(*told) != 3 {
			t.Errorf("after it was good again it was not told: %q", *told)
		}
	})
}

// A change is met though the file is as long as before, and its time was set back.
func TestValueOfAnOldTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	replace(t, path, "one")
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	v, _ := text(t, path)
	for _, next := range []string{"two", "six", "ten"} { // all but certainly within one tick
		if err := os.WriteFile(path, []byte(next), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
		if v.Refresh(); v.Get() != next {
			t.Errorf("it is %q, not %q", v.Get(), next)
		}
	}
}

// A value is made again when its file's mode changes, since the mode may be refused, and is not
// made again for the same content.
func TestValueOfAnotherMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	replace(t, path, "one")
	made := 0
	v, err := NewValue(func() (int, error) { made++; return made, nil }, nil, path)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, path, "one")
	if v.Refresh(); made != 1 {
		t.Errorf("made %d times of the same", made)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if v.Refresh(); made != 2 {
		t.Errorf("made %d times, the last for another mode", made)
	}
}

// A file that is gone for long takes the value with it; one that is replaced does not.
func TestValueOfAFileThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		replace(t, path, "one")
		v, told := text(t, path)
		dropped := 0
		v.OnGone(3*time.Second, func() string { dropped++; return "none" })
		is := func(want string, troubled bool) {
			t.Helper()
			if got := v.Get(); got != want || (v.Trouble() != nil) != troubled {
				t.Errorf("it is %q, not %q; %v", got, want, v.Trouble())
			}
		}
		for range 2 { // an editor
			_ = os.Remove(path)
			time.Sleep(2 * time.Second)
			is("one", true)
			time.Sleep(2 * time.Second)
			is("one", true)
			replace(t, path, "one")
			time.Sleep(CheckInterval)
			is("one", false)
		}
		_ = os.Remove(path)
		time.Sleep(time.Hour) // nobody asks
		is("one", true)
		time.Sleep(3 * time.Second)
		is("none", true)
		time.Sleep(time.Hour)
		is("none", true)
		if dropped != 1 || len(*told) != 3 {
			t.Errorf("dropped %d times, and told %q", dropped, *told)
		}
		replace(t, path, "two")
		time.Sleep(CheckInterval)
		is("two", false)
	})
}

func TestValueOfNothing(t *testing.T) {
	_, err := NewValue(func() (int, error) { return 1, nil }, nil, filepath.Join(t.TempDir(), "none"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
