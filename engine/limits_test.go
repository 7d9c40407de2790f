package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzQueueName(f *testing.F) {
	for _, s := range []string{"", "q", "-q", "-\xd5", "order.unpaid", "a b", strings.Repeat("x", 201), "\xff", "ü", "(a);$_/+"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		err := CheckQueue("push", s)
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
		err := CheckKey("push", "q", s)
		want := len(s) >= 1 && len(s) <= MaxKeyBytes && s != "." && s != ".." && utf8.ValidString(s)
		if (err == nil) != want {
			t.Errorf("%q: %v", s, err)
		}
		explained(t, err)
	})
}

func FuzzWorker(f *testing.F) {
	for _, s := range []string{"", "host:42", "wörker 2", "a\nb", "\x00", "\x7f", "\u0085", "\xff", strings.Repeat("w", 100), strings.Repeat("w", 101), strings.Repeat("ü", 50)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w := Want{Queue: "q", Max: 1, Worker: s}
		err := w.Validate()
		want := len(s) <= 100 && utf8.ValidString(s)
		for _, r := range s {
			want = want && r >= ' ' && (r < 0x7f || r > 0x9f)
		}
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

// unwell are messages that must not be pushed, each for one reason.
var unwell = map[string]func(m *Message){
	"negative delay":    func(m *Message) { m.Due.In = -time.Second },
	"delay and due":     func(m *Message) { m.Due = When{In: time.Second, At: time.Now()} },
	"year 10000":        func(m *Message) { m.Due.At = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	"rounded up":        func(m *Message) { m.Due.At = time.Date(9999, 12, 31, 23, 59, 59, 999_900_000, time.UTC) },
	"year 0":            func(m *Message) { m.Due.At = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC) },
	"no name":           func(m *Message) { m.Headers = []Header{{"", "v"}} },
	"bad header":        func(m *Message) { m.Headers = []Header{{"n", "\xff"}} },
	"headers":           func(m *Message) { m.Headers = slices.Repeat([]Header{{"n", "v"}}, MaxHeaders+1) },
	"header bytes":      func(m *Message) { m.Headers = []Header{{"n", strings.Repeat("v", MaxHeaderBytes)}} },
	"many attempts":     func(m *Message) { m.MaxAttempts = MaxMaxAttempts + 1 },
	"short ttr":         func(m *Message) { m.TTR = time.Microsecond },
	"long ttr":          func(m *Message) { m.TTR = 25 * time.Hour },
	"expiry":            func(m *Message) { m.ExpireAfter = -2 },
	"negative memory":   func(m *Message) { m.Remember = -2 },
	"long memory":       func(m *Message) { m.Remember = MaxRemember + 1 },
	"backoffs":          func(m *Message) { m.Backoff = make([]time.Duration, MaxBackoffs+1) },
	"negative backoff":  func(m *Message) { m.Backoff = []time.Duration{-1} },
	"policy":            func(m *Message) { m.OnConflict = Rearm + 1 },
	"rearm without key": func(m *Message) { m.OnConflict = Rearm },
	"token without key": func(m *Message) { m.OnConflict, m.Token = Replace, "t" },
	"token, keep_due":   func(m *Message) { m.Key, m.OnConflict, m.Token = "k", KeepDue, "t" },
	"token, too long": func(m *Message) {
		m.Key, m.OnConflict, m.Token = "k", Replace, strings.Repeat("t", MaxTokenBytes+1)
	},
	"key":   func(m *Message) { m.Key = ".." },
	"queue": func(m *Message) { m.Queue = "" },
}

func well() Message {
	return Message{Queue: "q", Terms: Terms{MaxAttempts: 1, TTR: time.Second}}
}

func TestMessagesAreValidated(t *testing.T) {
	for name, spoil := range unwell {
		m := well()
		spoil(&m)
		err := m.Validate("push", 100)
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		explained(t, err)
	}
	m := well()
	m.Body = make([]byte, 101)
	if err := m.Validate("push", 100); !errors.Is(err, ErrTooLarge) {
		t.Errorf("large body: %v", err)
	}
	m = Message{Queue: "q", Key: "ключ", OnConflict: Rearm,
		Due:     When{At: time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)},
		Content: Content{Body: make([]byte, 100), Headers: slices.Repeat([]Header{{"n", ""}}, MaxHeaders)},
		Terms:   Terms{MaxAttempts: MaxMaxAttempts, TTR: MaxTTR, Backoff: make([]time.Duration, MaxBackoffs)},
	}
	if err := m.Validate("push", 100); err != nil {
		t.Errorf("good message: %v", err)
	}
}

func TestCallsAreValidated(t *testing.T) {
	ref := func(r Ref) error { return r.Validate("get") }
	want := func(w Want) error { return w.Validate() }
	settle := func(s Settlement) error { return s.Validate() }
	for name, c := range map[string]struct{ err, want error }{
		"a key":                {ref(Ref{Queue: "q", Key: "k"}), nil},
		"an id":                {ref(Ref{Queue: "q", ID: 1}), nil},
		"no queue":             {ref(Ref{Key: "k"}), ErrInvalid},
		"a bad queue":          {ref(Ref{Queue: "ü", ID: 1}), ErrInvalid},
		"both":                 {ref(Ref{Queue: "q", ID: 1, Key: "k"}), ErrInvalid},
		"neither":              {ref(Ref{Queue: "q"}), ErrInvalid},
		"a bad key":            {ref(Ref{Queue: "q", Key: "."}), ErrInvalid},
		"in a state":           {ref(Ref{Queue: "q", Key: "k", IfState: Dead}), nil},
		"finished":             {ref(Ref{Queue: "q", Key: "k", IfState: Finished}), ErrInvalid},
		"in no state":          {ref(Ref{Queue: "q", Key: "k", IfState: 99}), ErrInvalid},
		"the most":             {want(Want{Queue: "q", Max: MaxLease, TTR: MaxTTR}), nil},
		"more than that":       {want(Want{Queue: "q", Max: MaxLease + 1}), ErrInvalid},
		"none":                 {want(Want{Queue: "q"}), ErrInvalid},
		"a short lease":        {want(Want{Queue: "q", Max: 1, TTR: 1}), ErrInvalid},
		"a long lease":         {want(Want{Queue: "q", Max: 1, TTR: MaxTTR + 1}), ErrInvalid},
		"of no queue":          {want(Want{Max: 1}), ErrInvalid},
		"ack":                  {settle(Settlement{Token: "x", Do: Ack, TTR: 1}), nil},
		"no token":             {settle(Settlement{Do: Ack}), ErrInvalid},
		"no action":            {settle(Settlement{Token: "x"}), ErrInvalid},
		"snooze without when":  {settle(Settlement{Token: "x", Do: Snooze}), ErrInvalid},
		"snooze into the past": {settle(Settlement{Token: "x", Do: Snooze, When: &When{In: -1}}), ErrInvalid},
		"a short extension":    {settle(Settlement{Token: "x", Do: Extend, TTR: 1}), ErrInvalid},
		"a batch":              {CheckBatch("push", MaxBatch), nil},
		"a large batch":        {CheckBatch("push", MaxBatch+1), ErrTooLarge},
		"all dead":             {CheckRedrive("q", nil, 0), nil},
		"fewer than none":      {CheckRedrive("q", nil, -1), ErrInvalid},
		"many ids":             {CheckRedrive("q", make([]ID, MaxBatch+1), 0), ErrTooLarge},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
}

func TestURLWithAnUnescapedPassword(t *testing.T) {
	for _, secret := range []string{"a/b", "a#b", "a%b", "a[b", "a^b", "a{b"} {
		_, err := Open(t.Context(), "nowhere://user:"+secret+"@127.0.0.1")
		if explained(t, err); err == nil || !strings.Contains(err.Error(), "password_file") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", secret, err)
		}
	}
}
