package wire

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOf(t *testing.T) {
	for text, want := range map[string]string{
		"":          "",
		"panic: ##": "panic: ##",
		"dial tcp 10.0.0.7:443: timeout after 1.5s":            "dial tcp #: timeout after #",
		"user 0b5e3f6c-3b0e-4a54-9f5f-0c3d0a5b7a11 is unknown": "user # is unknown",
		"no such order A17/42":                                 "no such order #",
		strings.Repeat("ä", 200):                               strings.Repeat("ä", 150),
		"x" + strings.Repeat("ä", 200):                         "x" + strings.Repeat("ä", 149),
	} {
		if got := Cause(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Who asks for a group by its cause gets it: the cause of a cause is that cause.
func FuzzOf(f *testing.F) {
	f.Add("#.# 1.#-2")
	f.Add(strings.Repeat("1:", 200))
	f.Add("#+0#")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		once := Cause(text)
		if again := Cause(once); again != once || len(once) > MaxCause || !utf8.ValidString(once) {
			t.Errorf("%q: %q, and of that %q", text, once, again)
		}
	})
}
