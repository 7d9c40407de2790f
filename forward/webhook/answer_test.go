package webhook

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestWhatAnswersMean(t *testing.T) {
	for _, c := range []struct {
		status     int
		retryAfter string
		want       string // the error's beginning
	}{
		{200, "", ""},
		{202, "", ""},
		{204, "", ""},
		{299, "9", ""},
		{304, "", "NAME answered 304 Not Modified"},
		{400, "", "NAME answered 400 Bad Request: no"},
		{401, "", "NAME answered 401 Unauthorized: no"},
		{404, "", "NAME answered 404 Not Found: no"},
		{404, "60", "retry in 1m0s: NAME answered 404 Not Found: no"},
		{408, "", "NAME answered 408 Request Timeout: no"},
		{410, "", "bury: NAME answered 410 Gone: no"},
		{410, "60", "bury: NAME answered 410 Gone: no"},
		{425, "", "NAME answered 425 Too Early: no"},
		{429, "", "NAME answered 429 Too Many Requests: no"},
		{429, "60", "retry in 1m0s: NAME answered 429 Too Many Requests: no"},
		{429, "0", "retry in 15s: "},                           // never sooner than the backoff
		{429, "999999999999999999999", "retry in 1h0m0s: "},    // never later than the bound
		{503, "Fri, 01 Jan 1999 00:00:00 GMT", "retry in 15s"}, // has passed
		{503, "soon", "NAME answered 503 Service Unavailable: no"},
		{500, "", "NAME answered 500 Internal Server Error: no"},
		{599, "", "NAME answered 599: no"},
	} {
		t.Run(fmt.Sprint(c.status, " ", c.retryAfter), func(t *testing.T) {
			at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, "no\r\n")
			})
			err := open(t, &Config{URL: at + "/?token=geheim", Options: local()}).Send(t.Context(), message("x"))
			want := strings.Replace(c.want, "NAME", at, 1)
			if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) || err != nil && strings.Contains(err.Error(), "geheim") {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestRedirectsAreNamedAndNotFollowed(t *testing.T) {
	var followed atomic.Int64
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		for location, want := range map[string]string{
			strings.Replace(elsewhere, "//", "//u:geheim@", 1) + "/new?token=geheim#geheim": elsewhere + "/new",
			"/paid/":                        "/paid/",
			"http://169.254.169.254/latest": "http://169.254.169.254/latest",
			"http://[geheim":                "without a location",
			"":                              "without a location",
		} {
			at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Location"] = []string{location}
				w.WriteHeader(status)
			})
			err := open(t, &Config{URL: at, Options: local()}).Send(t.Context(), message("x"))
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") || strings.HasPrefix(err.Error(), "bury") {
				t.Errorf("%d to %q: %v", status, location, err)
			}
		}
	}
	if n := followed.Load(); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

func TestHugeAnswersAreCut(t *testing.T) {
	for _, status := range []int{200, 500} {
		var written atomic.Int64
		at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			line := []byte(strings.Repeat("very sorry\x00\x1b[31m\n", 1000))
			for range 10_000 {
				n, err := w.Write(line)
				written.Add(int64(n))
				if err != nil {
					return
				}
			}
			t.Errorf("%d: all of it was read", status)
		})
		target := open(t, &Config{URL: at, Options: local()})
		err := target.Send(t.Context(), message("x"))
		if status == 200 {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "very sorry [31m very") || len(err.Error()) > MaxQuoted+100 || strings.ContainsAny(err.Error(), "\x00\x1b\n") {
			t.Errorf("%d bytes: %v", len(err.Error()), err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 500e6, time.UTC)
	for v, want := range map[string]time.Duration{
		"0": 0, "120": 2 * time.Minute, "9223372036": 9223372036 * time.Second,
		"9223372037": 1<<63 - 1, "99999999999999999999": 1<<63 - 1,
		"Mon, 04 May 2026 03:02:31 GMT":  29500 * time.Millisecond,
		"Monday, 04-May-26 03:02:31 GMT": 29500 * time.Millisecond,
		"Mon May  4 03:02:31 2026":       29500 * time.Millisecond,
		"Mon, 04 May 2026 03:02:01 GMT":  0,
		"":                               -1, "-1": -1, "+1": -1, "1.5": -1, "1 ": -1, "0x10": -1, "soon": -1, "Mon, 04 May": -1,
	} {
		got, ok := retryAfter(v, now)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %s, want %s", v, got, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{"", "1", "99999999999999999999", "Mon, 04 May 2026 03:02:31 GMT", "-1"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		if d, ok := retryAfter(v, time.Now()); d < 0 || !ok && d != 0 {
			t.Errorf("%q: %s, %v", v, d, ok)
		}
	})
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "a", " a  b\n", "\xff\x00", strings.Repeat("é", MaxQuoted), "\u202egnp.exe", "\u00a0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := printable(s)
		if len(p) > MaxQuoted || !utf8.ValidString(p) || p != strings.TrimSpace(p) || strings.Contains(p, "  ") {
			t.Errorf("%q becomes %q", s, p)
		}
		for _, r := range p {
			if !unicode.IsPrint(r) {
				t.Errorf("%q becomes %q", s, p)
			}
		}
		if printable(p) != p {
			t.Errorf("%q becomes %q, and that %q", s, p, printable(p))
		}
	})
}
