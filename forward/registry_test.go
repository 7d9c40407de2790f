package forward

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

type nowhere struct {
	u *url.URL
	o *Options
}

func (nowhere) Send(context.Context, *tarry.Message[[]byte]) error { return nil }
func (nowhere) Close() error                                       { return nil }

func init() {
	Register("nowhere", func(u *url.URL, o *Options) (Target, error) { return nowhere{u, o}, nil })
}

func TestOpenFindsTheSchemeAndFillsInDefaults(t *testing.T) {
	given := &Options{Headers: []Header{{Name: "A", Value: "1"}}}
	got, err := Open("nowhere://host/path", given)
	if err != nil {
		t.Fatal(err)
	}
	n := got.(nowhere)
	given.Headers[0].Value = "changed later"
	if n.u.Host != "host" || n.o.Timeout != DefaultTimeout || n.o.Logger == nil || n.o.Headers[0].Value != "1" {
		t.Errorf("opened %v with %+v", n.u, n.o)
	}
	if _, err := Open("nowhere:", nil); err != nil {
		t.Errorf("without options: %v", err)
	}
	if got := Schemes(); !slices.Contains(got, "nowhere") || !slices.IsSorted(got) {
		t.Errorf("the schemes are %v", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	one := func(name string) *Options { return &Options{Headers: []Header{{Name: name, Value: "v"}}} }
	for what, c := range map[string]struct {
		url  string
		o    *Options
		says string
	}{
		"unknown scheme":   {"gopher://u:geheim@h", nil, "nowhere"},
		"no scheme":        {"host/path", nil, "scheme"},
		"no URL":           {"nowhere://u:geheim@[h", nil, "not a URL"},
		"no header name":   {"nowhere:", one(""), "no name"},
		"own header":       {"nowhere:", one("tarry-KEY"), "tarry's own"},
		"header twice":     {"nowhere:", &Options{Headers: []Header{{Name: "a"}, {Name: "A"}}}, "twice"},
		"negative timeout": {"nowhere:", &Options{Timeout: -time.Second}, "negative"},
	} {
		_, err := Open(c.url, c.o)
		if !errors.Is(err, tarry.ErrInvalid) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v, want it to say %q", what, err, c.says)
		}
	}
}

func TestRegisteredTwicePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Register("nowhere", nil)
}
