package cli

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/internal/secretfile"
)

// routeSettings is a route as written in a --config file.
type routeSettings struct {
	title
	Target       string            `json:"target"`
	TargetFile   string            `json:"target_file"`
	Concurrency  *int              `json:"concurrency"`
	Rate         *float64          `json:"rate"`
	Burst        *int              `json:"burst"`
	Headers      map[string]string `json:"headers"`
	Timeout      *jsonDuration     `json:"timeout"`
	SecretFile   string            `json:"secret_file"`
	AllowPrivate bool              `json:"allow_private"`
}

// readRoutes reads and checks the routes of a file, and fills in defaults.
func (c *configFile) readRoutes() (forward.Routes, error) {
	given, err := entries[routeSettings](c, &routesSection)
	if err != nil {
		return nil, err
	}
	routes := make(forward.Routes, len(given))
	for i := range given {
		if routes[i], err = given[i].route(); err != nil {
			return nil, c.wrong(&routesSection, i, given[i].of(), err)
		}
	}
	if routes, err = routes.Complete(); err == nil {
		err = routes.Check()
	}
	if err != nil {
		return nil, c.refused(err)
	}
	return routes, nil
}

// route returns the route that the settings describe.
func (s *routeSettings) route() (r forward.Route, err error) {
	r = forward.Route{Name: s.Name, Queue: s.Queue}
	if s.Queue == "" {
		return r, errors.New(`it has no queue (as in "queue": "order.paid", or "order.*" for all that begin so)`)
	}
	if r.Target, err = fileURL("target", s.Target, s.TargetFile); err != nil {
		return r, err
	}
	if r.Concurrency, err = atLeastOne("concurrency", s.Concurrency); err != nil {
		return r, err
	}
	if r.Burst, err = atLeastOne("burst", s.Burst); err != nil {
		return r, err
	}
	if s.Rate != nil {
		if r.Rate = *s.Rate; r.Rate == 0 {
			return r, errors.New("the rate is 0 (leave it out for no bound; tarry pause stops a queue)")
		}
	}
	if r.Options.Timeout, err = timeoutOf(s.Timeout); err != nil {
		return r, err
	}
	if s.SecretFile != "" {
		if r.Options.Secrets, err = readLines("secret_file", s.SecretFile); err != nil {
			return r, err
		}
	}
	r.Options.AllowPrivate = s.AllowPrivate
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		r.Options.Headers = append(r.Options.Headers, forward.Header{Name: name, Value: s.Headers[name]})
	}
	return r, nil
}

func atLeastOne(field string, n *int) (int, error) {
	if n == nil {
		return 0, nil
	}
	if *n < 1 {
		return 0, fmt.Errorf("the %s is %d; at least 1 is needed", field, *n)
	}
	return *n, nil
}

// readLines reads a file of secrets with one value on each line.
func readLines(field, path string) (lines []string, err error) {
	data, err := secretfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s: the file %s is empty", field, path)
	}
	return lines, nil
}

// shownTarget returns a target's URL without secrets. It hides a password. Of a URL from a
// target_file it shows only scheme and host.
func shownTarget(rawURL string, ofFile bool) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "?"
	}
	if ofFile {
		return u.Scheme + "://" + u.Host + "/…"
	}
	if u.User != nil {
		if _, has := u.User.Password(); !has {
			u.User = url.User("xxxxx") // may be a token as well as a name
		}
	}
	return u.Redacted()
}
