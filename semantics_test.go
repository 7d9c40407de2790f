package tarry_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/enginetest"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/ that are made from code")

func TestSemanticsTableIsTheModels(t *testing.T) {
	const file, end = "docs/semantics.md", "<!-- end -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	start := strings.Index(string(text), "<!-- transitions")
	if start < 0 {
		t.Fatalf("%s has no mark where the table begins", file)
	}
	head, rest, _ := strings.Cut(string(text[start:]), "\n")
	_, tail, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no mark where the table ends", file)
	}
	want := string(text[:start]) + head + "\n" + enginetest.Markdown() + end + tail
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the reference model; run go test -run TestSemantics . -update", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
