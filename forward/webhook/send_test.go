package webhook

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
)

// received is what a server was sent.
type received struct {
	*http.Request
	body []byte
}

// receiver returns the URL of a server that takes everything, and what it was sent.
func receiver(t testing.TB) (string, chan received) {
	got := make(chan received, 10)
	return serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- received{r, body}
	}), got
}

func TestSendPostsBodyAndMetadata(t *testing.T) {
	at, got := receiver(t)
	o := local()
	o.Headers = []forward.Header{{Name: "team", Value: "blue"}}
	target := open(t, &Config{URL: strings.Replace(at, "//", "//u:p%40@", 1) + "/paid?x=1", Options: o})
	if err := target.Send(t.Context(), message(`{"id":42}`, forward.Header{Name: "trace", Value: "a b"}, forward.Header{Name: "trace", Value: "c"})); err != nil {
		t.Fatal(err)
	}
	r := <-got
	user, password, _ := r.BasicAuth()
	if r.Method != "POST" || r.RequestURI != "/paid?x=1" || string(r.body) != `{"id":42}` || user != "u" || password != "p@" {
		t.Errorf("the receiver got %s %s %s by %s:%s", r.Method, r.RequestURI, r.body, user, password)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Content-Length": "9", "User-Agent": "tarry",
		"Tarry-Id": "7", "Tarry-Queue": "order.paid", "Tarry-Key": "42", "Tarry-Attempt": "1", "Tarry-Due": "2026-05-04T03:02:01.000Z",
		"Team": "blue", "Trace": "a b, c", "Webhook-Id": "order:paid/7/1777863600005",
		"Webhook-Signature": "", "Idempotency-Key": "", "Accept-Encoding": "",
	} {
		if got := strings.Join(r.Header[name], ", "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}

	if err := target.Send(t.Context(), message("")); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.ContentLength != 0 || len(r.body) > 0 {
		t.Errorf("of an empty body the receiver got %d: %q", r.ContentLength, r.body)
	}
}

func TestContentTypeOfTheOptionsGoesBeforeTheMessages(t *testing.T) {
	at, got := receiver(t)
	o := local()
	o.Headers = []forward.Header{{Name: "content-type", Value: "text/csv"}}
	if err := open(t, &Config{URL: at, Options: o}).Send(t.Context(), message("a;b", forward.Header{Name: "Content-Type", Value: "text/html"})); err != nil {
		t.Fatal(err)
	}
	if r := <-got; strings.Join(r.Header["Content-Type"], ", ") != "text/csv" {
		t.Errorf("the content type is %q", r.Header["Content-Type"])
	}
}

func TestSignedWithEachSecret(t *testing.T) {
	const old = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	at, got := receiver(t)
	o := local()
	o.Secrets = []string{secret, old}
	target := open(t, &Config{URL: at, Options: o})
	ids := make(map[string]bool)
	m := message(`{"id":42}`)
	for m.Attempt = range uint32(3) {
		m.Due = m.Due.Add(time.Minute)
		if err := target.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		r := <-got
		ids[r.Header.Get("webhook-id")] = true
		for _, s := range o.Secrets {
			w, err := standardwebhooks.NewWebhook(s)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Verify(r.body, r.Header); err != nil {
				t.Errorf("attempt %d, secret %s: %v", m.Attempt, s, err)
			}
			if err := w.Verify([]byte("{}"), r.Header); err == nil {
				t.Error("another body is taken for this one")
			}
		}
	}
	if len(ids) != 1 {
		t.Errorf("the attempts of a message have the ids %v", ids)
	}
	other := *m
	other.Created = m.Created.Add(time.Millisecond) // the store began anew
	if ids[eventID(&other)] || strings.Contains(eventID(&other), ".") {
		t.Errorf("another message has the id %s", eventID(&other))
	}
}

func TestHeadersCannotSmuggle(t *testing.T) {
	at, got := receiver(t)
	target := open(t, &Config{URL: at, Options: local()})
	const key = "ключ 100%\r\nEvil: 2"
	m := message("body",
		forward.Header{Name: "A B", Value: "1"},
		forward.Header{Name: "X\r\nEvil", Value: "1"},
		forward.Header{Name: "Evil: 1\r\nY", Value: "1"},
		forward.Header{Name: "ü", Value: "1"},
		forward.Header{Name: "lines", Value: "a\r\nEvil: 1\r\n\r\nPOST / HTTP/1.1"},
		forward.Header{Name: "ends", Value: " a "},
		forward.Header{Name: "plain", Value: "100% of it"},
		forward.Header{Name: "host", Value: "evil.example"},
		forward.Header{Name: "CONTENT-LENGTH", Value: "0"},
		forward.Header{Name: "Transfer-Encoding", Value: "chunked"},
		forward.Header{Name: "Connection", Value: "close, Tarry-Id"},
		forward.Header{Name: "Proxy-Authorization", Value: "x"},
		forward.Header{Name: "Upgrade", Value: "h2c"},
		forward.Header{Name: "Expect", Value: "100-continue"},
		forward.Header{Name: "webhook-ID", Value: "feigned"},
		forward.Header{Name: "webhook-signature", Value: "v1,feigned"},
		forward.Header{Name: "tarry-id", Value: "8"},
		forward.Header{Name: "webhook_id", Value: "feigned"},
		forward.Header{Name: "Transfer_Encoding", Value: "chunked"},
		forward.Header{Name: "TARRY_ID", Value: "8"},
	)
	m.Key, m.ContentType = key, "text/plain\r\nEvil: 3"
	if err := target.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	r := <-got
	u, _ := url.Parse(at)
	if string(r.body) != "body" || r.Host != u.Host || r.Header["Evil"] != nil || len(r.TransferEncoding) > 0 || r.Close {
		t.Errorf("the receiver got %+v %q", r.Request, r.body)
	}
	for _, name := range []string{"A b", "X", "Y", "Connection", "Upgrade", "Expect", "Proxy-Authorization", "Webhook-Signature", "Webhook_id", "Transfer_encoding", "Tarry_id"} {
		if v := r.Header[name]; v != nil {
			t.Errorf("%s: %q", name, v)
		}
	}
	for name, want := range map[string]string{"Lines": "a\r\nEvil: 1\r\n\r\nPOST / HTTP/1.1", "Ends": " a ", "Tarry-Key": key, "Content-Type": m.ContentType} {
		if got, err := url.PathUnescape(strings.Join(r.Header[name], "")); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if r.Header.Get("Plain") != "100% of it" || r.Header.Get("Tarry-Id") != "7" || r.Header.Get("Webhook-Id") != eventID(m) {
		t.Errorf("the headers are %v", r.Header)
	}
}

func FuzzHeaderValue(f *testing.F) {
	for _, s := range []string{"", "a", " a", "a\r\nb", "100%", "é%41", "\x00\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := headerValue(s)
		for _, c := range []byte(v) {
			if c < ' ' || c > '~' {
				t.Fatalf("%q becomes %q", s, v)
			}
		}
		if v == s {
			return
		}
		if back, err := url.PathUnescape(v); err != nil || back != s {
			t.Fatalf("%q becomes %q, which is read as %q, %v", s, v, back, err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	one := func(name, value string) forward.Options {
		return forward.Options{Headers: []forward.Header{{Name: name, Value: value}}}
	}
	for what, c := range map[string]struct {
		cfg  Config
		says string
	}{
		"no URL":            {Config{URL: "https://u:geheim@[x"}, "not a URL"},
		"other scheme":      {Config{URL: "ftp://u:geheim@x.example"}, "https://"},
		"no host":           {Config{URL: "https:///geheim"}, "no host"},
		"only a port":       {Config{URL: "https://:80"}, "no host"},
		"port":              {Config{URL: "https://x.example:65536"}, "port"},
		"port 0":            {Config{URL: "https://x.example:0"}, "port"},
		"fragment":          {Config{URL: "https://x.example/#geheim"}, "fragment"},
		"retry after":       {Config{URL: "https://x.example", MaxRetryAfter: -1}, "negative"},
		"timeout":           {Config{URL: "https://x.example", Options: forward.Options{Timeout: -1}}, "negative"},
		"reserved header":   {Config{URL: "https://x.example", Options: one("host", "y")}, "header host"},
		"signature":         {Config{URL: "https://x.example", Options: one("webhook-signature", "y")}, "webhook-signature"},
		"header's name":     {Config{URL: "https://x.example", Options: one("a b", "y")}, "a b"},
		"header's value":    {Config{URL: "https://x.example", Options: one("a", "geheim\n")}, "header a"},
		"credentials twice": {Config{URL: "https://u:geheim@x.example", Options: one("authorization", "y")}, "have credentials"},
		"secret's prefix":   {Config{URL: "https://x.example", Options: forward.Options{Secrets: []string{secret, "geheim"}}}, "secret 2 of 2"},
		"secret's encoding": {Config{URL: "https://x.example", Options: forward.Options{Secrets: []string{"whsec_geheim!"}}}, "whsec_"},
		"secret's length":   {Config{URL: "https://x.example", Options: forward.Options{Secrets: []string{"whsec_Z2VoZWlt"}}}, "24"},
	} {
		_, err := New(&c.cfg)
		if !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v, want it to say %q", what, err, c.says)
		}
	}
}

func TestOpenedByScheme(t *testing.T) {
	at, got := receiver(t)
	o := local()
	o.Secrets = []string{secret}
	target, err := forward.Open(at+"/paid", &o)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if err := target.Send(t.Context(), message("x")); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.RequestURI != "/paid" || r.Header.Get("webhook-signature") == "" {
		t.Errorf("the receiver got %s with %v", r.RequestURI, r.Header)
	}
	if _, err := forward.Open("https://10.0.0.1/", nil); !errors.Is(err, tarry.ErrInvalid) {
		t.Errorf("a private address: %v", err)
	}
}
