package names

import (
	"regexp"
	"strings"
	"testing"
)

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, queue string
		want           bool
	}{
		{"order.*", "order.paid", true},
		{"order.*", "order.", true},
		{"order.*", "order.paid/eu.late", true},
		{"order.*", "order", false},
		{"order.*", "border.paid", false},
		{"*.paid", "order.paid", true},
		{"*.paid", "order.paid.late", false},
		{"*", "anything/at;all", true},
		{"a*b*c", "abc", true},
		{"a*b*c", "axxbyybzc", true},
		{"a*b*c", "axxc", false},
		{"a*bc*c", "abc", false},
		{"aa*aa", "aaa", false},
		{"a**b", "ab", true},
		{"*", "tarry.schedules", false},
		{"t*", "tarry.schedules", false},
		{"tarry.*", "tarry.schedules", true},
		{"*", "tarry", true},
	} {
		if got := fits(c.pattern, c.queue); got != c.want {
			t.Errorf("%s fits %s: %v", c.queue, c.pattern, got)
		}
	}
}

func FuzzFits(f *testing.F) {
	f.Add("a*b*c", "axxbyybzc")
	f.Add("*", "")
	f.Add("aa*aa", "aaa")
	f.Fuzz(func(t *testing.T, pattern, queue string) {
		if !IsPattern(pattern) || strings.HasPrefix(queue, reserved) {
			return
		}
		re, err := regexp.Compile(`(?s)\A` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `\z`)
		if err != nil || strings.ToValidUTF8(queue, "") != queue || strings.ToValidUTF8(pattern, "") != pattern {
			return
		}
		if got, want := fits(pattern, queue), re.MatchString(queue); got != want {
			t.Errorf("%q fits %q: %v, want %v", queue, pattern, got, want)
		}
	})
}
