package webhook

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tarryhq/tarry"
)

const (
	// MaxQuoted is how many bytes of an answer's body an error quotes.
	MaxQuoted = 512

	// maxDrained is how much of an answer's body is read to reuse the connection; if there
	// is more, the connection is closed.
	maxDrained = 64 << 10

	// bodyPatience is how long an answer's body may take after its status.
	bodyPatience = time.Second
)

// verdict returns the handler's result for an answer.
func (t *Target) verdict(m *tarry.Message[[]byte], res *http.Response, now time.Time) error {
	if res.StatusCode/100 == 2 {
		if res.ContentLength != 0 {
			_, _ = io.CopyN(io.Discard, res.Body, maxDrained)
		}
		return nil
	}
	err := t.answerError(res)
	if res.StatusCode == http.StatusGone {
		return tarry.Bury(err)
	}
	if after, ok := retryAfter(res.Header.Get("Retry-After"), now); ok {
		return tarry.RetryIn(max(min(after, t.maxRetryAfter), m.RetryDelay(m.Attempt)), err)
	}
	return err
}

// answerError returns the error for an answer other than 2xx.
func (t *Target) answerError(res *http.Response) error {
	status := strings.TrimSpace(strconv.Itoa(res.StatusCode) + " " + http.StatusText(res.StatusCode))
	switch place, err := res.Location(); {
	case res.StatusCode/100 != 3:
	case err != nil:
		return fmt.Errorf("%s answered %s without a location", t.name, status)
	default:
		// Parts that may be confidential are left out.
		place.User, place.RawQuery, place.ForceQuery, place.Fragment = nil, "", false, ""
		return fmt.Errorf("%s answered %s; redirects are not followed: the webhook's URL should be %s", t.name, status, printable(place.String()))
	}
	// The body of 101 is the connection itself, and reading it would ignore the context.
	if res.StatusCode < 200 {
		return fmt.Errorf("%s answered %s", t.name, status)
	}
	body := make([]byte, MaxQuoted)
	n, _ := io.ReadFull(res.Body, body)
	_, _ = io.CopyN(io.Discard, res.Body, maxDrained)
	if quote := printable(string(body[:n])); quote != "" {
		return fmt.Errorf("%s answered %s: %s", t.name, status, quote)
	}
	return fmt.Errorf("%s answered %s", t.name, status)
}

// printable returns the printable characters of s, at most MaxQuoted bytes on one line.
func printable(s string) string {
	var b strings.Builder
	space := false
	for _, r := range s {
		if !unicode.IsPrint(r) || r == ' ' || r == unicode.ReplacementChar {
			space = b.Len() > 0
			continue
		}
		if b.Len()+1+len(string(r)) > MaxQuoted {
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// retryAfter parses Retry-After: seconds, or an HTTP date. A past date is 0.
func retryAfter(v string, now time.Time) (_ time.Duration, ok bool) {
	if v != "" && strings.Trim(v, "0123456789") == "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil || n > math.MaxInt64/uint64(time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(n) * time.Second, true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return max(0, at.Sub(now)), true
}
