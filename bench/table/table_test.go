package table

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUpdate(t *testing.T) {
	const text = "<!-- measured: made by make bench-w -->\n" + end + "before\n<!-- measured: made by make bench-x -->\nold\n" + end + "behind\n"
	for in, want := range map[string]string{
		"BenchmarkA-2 1 5 s\nwhole: yes\n":       strings.Replace(text, "old", "new", 1),
		"BenchmarkA-2 1 5 s\n":                   text, // they were killed
		"BenchmarkA-2 1 5 s\nFAIL\nwhole: yes\n": text,
		"whole: yes\n":                           text,
	} {
		file := filepath.Join(t.TempDir(), "f.md")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		err := update(file, "bench-x", strings.NewReader(in), func(w io.Writer, _ *Results) { io.WriteString(w, "new\n") })
		if (err == nil) != (want != text) {
			t.Errorf("%q: error %v", in, err)
		}
		if got, _ := os.ReadFile(file); string(got) != want {
			t.Errorf("%q: it is\n%s", in, got)
		}
	}
}
