package storeurl

import (
	"cmp"
	"errors"
	"math"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/secretfile"
)

// List takes an option that may be given several times.
func (r *Reader) List(name string) []string {
	values := r.values[name]
	r.values.Del(name)
	r.known = append(r.known, name)
	return values
}

// Rest takes all remaining options, to pass them on.
func (r *Reader) Rest() url.Values {
	if strings.Contains(r.url.RawQuery, "@") {
		r.Fail(escape) // they may be part of a password
	}
	rest := r.values
	r.values = nil
	return rest
}

// Text takes a text option.
func (r *Reader) Text(name string, to *string) bool {
	values := r.List(name)
	if len(values) > 1 {
		r.Fail("%s is given twice", name)
	}
	if len(values) == 0 {
		return false
	}
	*to = values[0]
	return true
}

// Bool takes an option that is true or false.
func (r *Reader) Bool(name string, to *bool) bool {
	return set(r, name, to, strconv.ParseBool, "true or false")
}

// Int takes an option that is a whole number, at least 0.
func (r *Reader) Int(name string, to *int64) bool {
	return set(r, name, to, parseInt, "a whole number, at least 0")
}

// Duration takes an option that is a duration, at least 0.
func (r *Reader) Duration(name string, to *time.Duration) bool {
	return set(r, name, to, func(s string) (time.Duration, error) {
		d, err := duration.Parse(s)
		if d < 0 {
			err = strconv.ErrRange
		}
		return d, err
	}, "a duration such as 500ms, 30s, 1h or 7d")
}

// History takes the options history and history_max.
func (r *Reader) History(to *engine.History) {
	r.Duration("history", &to.Keep)
	r.Int("history_max", &to.Max)
	if err := to.Validate(); err != nil {
		r.Fail("history_max is too large")
	}
}

// Pace takes the option pace. The 0 of a URL is -1 in a Config, whose 0 is the default.
func (r *Reader) Pace(to *time.Duration) {
	if !r.Duration("pace", to) {
		return
	}
	if *to > engine.MaxPace {
		r.Fail("pace is at most %v", engine.MaxPace)
	}
	if *to == 0 {
		*to = -1
	}
}

// Bytes takes an option that is a size: a number of bytes, or one with a unit.
func (r *Reader) Bytes(name string, to *int64) bool {
	return set(r, name, to, ParseBytes, "a size such as 65536, 64KiB, 512MiB or 2GiB")
}

// Secret takes an option that names a file, and reads the secret from that file, without
// surrounding white space.
func (r *Reader) Secret(name string, to *string) bool { return r.secret(name, to, os.ReadFile) }

// Token takes the password in the URL, or reads the token from the file that an option
// names. Other users must not be able to read or write the file.
func (r *Reader) Token(name string, to *string) bool {
	return r.password(name, r.secret(name, to, secretfile.Read), to)
}

func (r *Reader) secret(name string, to *string, read func(path string) ([]byte, error)) bool {
	var path string
	if !r.Text(name, &path) {
		return false
	}
	b, err := read(path)
	if err != nil {
		r.Fail("%s: %v", name, err)
		return false
	}
	if *to = strings.TrimSpace(string(b)); *to == "" {
		r.Fail("%s: the file is empty", name)
	}
	return true
}

// Password takes the password in the URL, or reads it from the file that an option names.
func (r *Reader) Password(name string, to *string) bool {
	return r.password(name, r.Secret(name, to), to)
}

// password takes the password in the URL. file says that a file had one; then the URL must
// have none.
func (r *Reader) password(name string, file bool, to *string) bool {
	password, inURL := r.url.User.Password()
	if file && inURL {
		r.Fail("the URL has a password and a %s; one is enough", name)
	}
	if inURL {
		*to = password
	}
	return file || inURL
}

// Number reads a part of a URL that is a whole number, at least 0.
func (r *Reader) Number(what, text string, to *int64) {
	n, err := parseInt(text)
	if err != nil {
		r.Fail("%s is a whole number, at least 0; %s", what, escape)
		return
	}
	*to = n
}

// set takes an option and parses it.
func set[T any](r *Reader, name string, to *T, parse func(string) (T, error), wanted string) bool {
	var text string
	if !r.Text(name, &text) {
		return false
	}
	v, err := parse(text)
	if err != nil {
		if errors.Is(err, duration.ErrRange) {
			wanted = err.Error()
		}
		r.Fail("%s is %s", name, wanted)
		return false
	}
	*to = v
	return true
}

func parseInt(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err
}

// units are the units of sizes, longer ones first.
var units = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40},
}

// ParseBytes reads a number of bytes, or a number with a unit: KiB, MiB, GiB, TiB, or K, M,
// G, T for short, and kB, KB, MB, GB, TB or B.
func ParseBytes(s string) (int64, error) {
	unit := int64(1)
	for _, u := range units {
		if number, ok := strings.CutSuffix(s, u.name); ok {
			s, unit = number, u.bytes
			break
		}
	}
	n, err := parseInt(s)
	if err != nil || n > math.MaxInt64/unit {
		return 0, strconv.ErrRange
	}
	return n * unit, nil
}

// Bare fails if the URL has anything but options, such as a host or a path. The error shows
// the example.
func (r *Reader) Bare(example string) {
	u := r.url
	if u.Opaque != "" || u.Host != "" || u.Path != "" || u.User != nil || u.Fragment != "" {
		r.Fail("the URL of this store is like %s, without further parts but options", example)
	}
}

// Path returns the file path in the URL, SCHEME:PATH or, for an absolute one, SCHEME:///PATH.
func (r *Reader) Path() string {
	u := r.url
	path := u.Path
	if path == "" {
		unescaped, err := url.PathUnescape(u.Opaque)
		if err != nil {
			r.Fail("the path in the store's URL is not well percent-encoded")
		}
		path = unescaped
	}
	switch {
	case u.Host != "" || u.User != nil:
		r.Fail("this store has no host: write %s:PATH, or %[1]s:///PATH for one from the root", u.Scheme)
	case u.Fragment != "":
		r.Fail("write %s:PATH, with ? and # of the path as %%3F and %%23", u.Scheme)
	case path == "":
		r.Fail("the path is missing: write %s:PATH, such as %[1]s:tarry-data", u.Scheme)
	}
	return path
}

// Address returns host and port, with localhost as the default host.
func Address(addr, port string) string {
	host, given, err := net.SplitHostPort(addr)
	if err != nil {
		host = strings.Trim(addr, "[]")
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), cmp.Or(given, port))
}
