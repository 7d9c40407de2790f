package tarry

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tarryhq/tarry/engine"
)

func FuzzQueueName(f *testing.F) {
	for _, s := range []string{"", "q", "-q", "-\xd5", "order.unpaid", "a b", strings.Repeat("x", 201), "\xff", "ü", "(a);$_/+"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		err := checkQueue("push", s)
		want := len(s) >= 1 && len(s) <= MaxQueueBytes && s[0] != '-' && strings.Trim(s, queueChars) == "" &&
			strings.IndexFunc(s, func(r rune) bool { return r > 127 || !strings.ContainsRune(queueChars, r) }) < 0
		if (err == nil) != want {
			t.Errorf("%q: %v", s, err)
		}
		explained(t, err)
	})
}

func FuzzKey(f *testing.F) {
	for _, s := range []string{"", ".", "..", "...", "42", "ключ", "a/b", "\x00", "\xc3", strings.Repeat("k", 513), strings.Repeat("ü", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		err := checkKey("push", "q", s)
		want := len(s) >= 1 && len(s) <= MaxKeyBytes && s != "." && s != ".." && utf8.ValidString(s)
		if (err == nil) != want {
			t.Errorf("%q: %v", s, err)
		}
		explained(t, err)
	})
}

// explained checks that an error is one that programs and people can use.
func explained(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var e *Error
	if !errors.Is(err, ErrInvalid) || !errors.As(err, &e) || e.Hint == "" || len(err.Error()) > 400 || !utf8.ValidString(err.Error()) {
		t.Errorf("unhelpful: %q", err)
	}
}

func TestCheckRefusesBadMessages(t *testing.T) {
	c := &Client{maxBody: 100}
	msg := func(opts ...PushOption) engine.Message { return NewDraft("q", nil, opts...) }
	many := make([]time.Duration, MaxBackoffs+1)
	headers := func(n int) (opts []PushOption) {
		for range n {
			opts = append(opts, Header("n", "v"))
		}
		return opts
	}
	for name, m := range map[string]engine.Message{
		"negative delay":    msg(In(-time.Second)),
		"delay and due":     msg(In(time.Second), At(time.Now())),
		"year 10000":        msg(At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))),
		"year 0":            msg(At(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC))),
		"no name":           msg(Header("", "v")),
		"bad header":        msg(Header("n", "\xff")),
		"headers":           msg(headers(MaxHeaders + 1)...),
		"header bytes":      msg(Header("n", strings.Repeat("v", MaxHeaderBytes))),
		"attempts":          msg(MaxAttempts(0)),
		"many attempts":     msg(MaxAttempts(MaxMaxAttempts + 1)),
		"ttr 0":             msg(TTR(0)),
		"short ttr":         msg(TTR(time.Microsecond)),
		"long ttr":          msg(TTR(25 * time.Hour)),
		"expiry":            msg(ExpireAfter(-1)),
		"backoffs":          msg(Backoff(many...)),
		"negative backoff":  msg(Backoff(-1)),
		"policy":            msg(OnConflict(KeepBody + 1)),
		"rearm without key": msg(OnConflict(KeepBody)),
		"key":               msg(Key("..")),
	} {
		err := c.check("push", &m)
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		explained(t, err)
	}
	m := NewDraft("q", make([]byte, 101))
	if err := c.check("push", &m); !errors.Is(err, ErrTooLarge) {
		t.Errorf("large body: %v", err)
	}
	m = msg(At(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)), Key("ключ"), OnConflict(KeepBody), Header("n", ""))
	if err := c.check("push", &m); err != nil {
		t.Errorf("good message: %v", err)
	}
}
