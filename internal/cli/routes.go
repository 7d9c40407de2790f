package cli

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/internal/secretfile"
)

// routesName is the name of the routes in a --config file.
const routesName = "routes"

// routeSettings is a route as written in a --config file.
type routeSettings struct {
	Name         string            `json:"name"`
	Queue        string            `json:"queue"`
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

const routeFields = "known are name, queue, target, target_file, concurrency, rate, burst, headers, timeout, secret_file, allow_private"

type jsonDuration time.Duration

// UnmarshalText parses a duration such as 1500ms, 30m or 7d.
func (d *jsonDuration) UnmarshalText(b []byte) error {
	v, err := parseDuration(string(b))
	*d = jsonDuration(v)
	return err
}

// readRoutes reads and checks the routes of a file, and fills in defaults.
func (c *configFile) readRoutes() (forward.Routes, error) {
	given, err := c.routeSettings()
	if err != nil {
		return nil, err
	}
	routes := make(forward.Routes, len(given))
	for i := range given {
		if routes[i], err = given[i].route(); err != nil {
			return nil, c.wrongRoute(i, &given[i], err)
		}
	}
	if routes, err = routes.Complete(); err == nil {
		err = routes.Check()
	}
	if err != nil {
		return nil, c.wrongRoutes(err)
	}
	return routes, nil
}

// wrongRoutes makes an error of a Router, or of its routes, a mistake in the file.
func (c *configFile) wrongRoutes(err error) error {
	return usagef("", "%s: %s", c.path, strings.TrimPrefix(err.Error(), "tarry: "))
}

func (c *configFile) wrongRoute(i int, r *routeSettings, err error) error {
	name := fmt.Sprintf("route %d", i+1)
	if r.Name != "" {
		name += " (" + r.Name + ")"
	} else if r.Queue != "" {
		name += " (" + r.Queue + ")"
	}
	return usagef("", "%s: %s: %v", c.path, name, err)
}

// routeSettings parses the routes as written in the file.
func (c *configFile) routeSettings() ([]routeSettings, error) {
	if c.routes == nil {
		return nil, nil
	}
	var all []jsontext.Value
	if err := json.Unmarshal(c.routes, &all); err != nil || c.routes.Kind() != '[' {
		return nil, usagef(`as in "routes": [{"queue": "order.*", "target": "https://shop.example/due"}]`, "%s: routes is not an array of routes", c.path)
	}
	given := make([]routeSettings, len(all))
	for i, v := range all {
		err := json.Unmarshal(v, &given[i], json.RejectUnknownMembers(true))
		if v.Kind() == 'n' {
			err = errors.New("it is null")
		}
		if err != nil {
			return nil, c.wrongRoute(i, &given[i], routeError(err))
		}
	}
	return given, nil
}

// routeError names the field of a route that is wrong.
func routeError(err error) error {
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err
	}
	field := strings.ReplaceAll(strings.TrimPrefix(string(e.JSONPointer), "/"), "/", ".")
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return usagef(routeFields, "unknown field %q", field)
	case field == "":
		return usagef(`as in {"queue": "order.*", "target": "https://shop.example/due"}`, "it is a JSON %s and not an object", kindName(e.JSONKind))
	case e.Err != nil:
		return fmt.Errorf("%s: %w", field, e.Err)
	}
	return fmt.Errorf("%s cannot be a JSON %s", field, kindName(e.JSONKind))
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 't', 'f':
		return "boolean"
	}
	return k.String()
}

// route returns the route that the settings describe.
func (s *routeSettings) route() (r forward.Route, err error) {
	r = forward.Route{Name: s.Name, Queue: s.Queue, Target: s.Target}
	switch {
	case s.Queue == "":
		return r, errors.New(`it has no queue (as in "queue": "order.paid", or "order.*" for all that begin so)`)
	case s.Target == "" && s.TargetFile == "":
		return r, errors.New("it has neither target nor target_file (give one of them)")
	case s.Target != "" && s.TargetFile != "":
		return r, errors.New("both target and target_file are given (give one of them)")
	case s.TargetFile != "":
		lines, err := readLines("target_file", s.TargetFile)
		if err != nil {
			return r, err
		}
		if len(lines) > 1 {
			return r, fmt.Errorf("target_file: %s holds %d lines (it should hold one URL)", s.TargetFile, len(lines))
		}
		r.Target = lines[0]
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
	if s.Timeout != nil {
		if r.Options.Timeout = time.Duration(*s.Timeout); r.Options.Timeout == 0 {
			return r, errors.New("the timeout is 0 (leave it out for 10s)")
		}
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
