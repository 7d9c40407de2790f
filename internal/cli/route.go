package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/internal/secretfile"
)

func (p *Program) routeCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "route ls|test",
		Short: "Show and test the routes by which serve forwards messages",
		Long: `A route forwards the due messages of a queue, or of all queues that match a pattern, to a
target: a URL, a broker or a stream. Routes are in the --config file of serve:

  {"routes": [{"queue": "order.*", "target": "https://shop.example/due"}]}

These commands read that file and ask no server. Send serve SIGHUP to read it again.`,
	}, "usage: tarry route ls|test --config FILE", p.routeListCommand(), p.routeTestCommand())
}

// shownRoute is a route as route ls shows it, without secrets.
type shownRoute struct {
	Name         string   `json:"name"`
	Queue        string   `json:"queue"`
	Target       string   `json:"target"`
	Concurrency  int      `json:"concurrency"`
	Rate         float64  `json:"rate,omitempty"`
	Burst        int      `json:"burst,omitempty"`
	Timeout      string   `json:"timeout"`
	Headers      []string `json:"headers,omitempty"` // their names
	Secrets      int      `json:"secrets,omitempty"`
	AllowPrivate bool     `json:"allow_private,omitempty"`
}

func (p *Program) routeListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "Show and check the routes of a --config file",
		Long: `Ls shows the routes in order of precedence, with the defaults filled in. Passwords, secrets,
values of headers and the contents of a target_file are not shown.`,
		Example: "  tarry route ls --config tarry.json",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			routes, settings, err := readGiven[forward.Routes, routeSettings](p, &routesSection)
			if err != nil {
				return err
			}
			o := p.printer()
			o.head("NAME", "QUEUE", "TARGET", "CONCURRENCY", "RATE", "TIMEOUT")
			for i, r := range routes {
				s := shownRoute{
					Name: r.Name, Queue: r.Queue, Target: shownTarget(r.Target, settings[i].TargetFile != ""),
					Concurrency: r.Concurrency, Rate: r.Rate, Burst: r.Burst, Timeout: tarry.FormatDuration(r.Options.Timeout),
					Secrets: len(r.Options.Secrets), AllowPrivate: r.Options.AllowPrivate,
				}
				for _, h := range r.Options.Headers {
					s.Headers = append(s.Headers, h.Name)
				}
				rate := "-"
				if r.Rate > 0 {
					rate = fmt.Sprint(r.Rate)
				}
				o.row(s, s.Name, s.Queue, s.Target, s.Concurrency, rate, s.Timeout)
			}
			return o.flush()
		},
	}
	p.jsonFlag(cmd, "print JSON, one object a line")
	return cmd
}

// testBody is the body that route test sends by default.
const testBody = `{"test":"of a route of tarry"}`

func (p *Program) routeTestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test NAME|QUEUE [BODY|-]",
		Short: "Send one message through a route to its target, and show the result",
		Long: `Test sends a message to the target of a route. Name the route, or a queue that it forwards.
The message is sent once, from this machine, as in a first attempt. It is in no queue, and
no store or server is used; its id is made from the time.`,
		Example: `  tarry route test order.paid --config tarry.json
  tarry route test shop '{"order":"42"}' --config tarry.json`,
		Args: atMost(2, "NAME|QUEUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			routes, settings, err := readGiven[forward.Routes, routeSettings](p, &routesSection)
			if err != nil {
				return err
			}
			i, queue := findRoute(routes, args[0])
			if i < 0 {
				return &tarry.Error{Op: "route test " + args[0], Err: tarry.ErrNotFound, Hint: "no route has this name or takes this queue; tarry route ls shows them"}
			}
			body := []byte(testBody)
			if len(args) > 1 {
				if body, err = p.readBody(queue, args[1], tarry.DefaultMaxBody); err != nil {
					return err
				}
			}
			return p.testRoute(cmd.Context(), routes[i], shownTarget(routes[i].Target, settings[i].TargetFile != ""), queue, body)
		},
	}
	p.jsonFlag(cmd, "print JSON")
	return cmd
}

// findRoute returns the index of the route that has this name or takes this queue, and a queue
// for the test.
func findRoute(routes forward.Routes, arg string) (i int, queue string) {
	for i, r := range routes {
		if r.Name == arg || r.Queue == arg {
			return i, strings.ReplaceAll(r.Queue, "*", "test")
		}
	}
	return routes.Index(arg), arg
}

// testRoute sends one message through a route.
func (p *Program) testRoute(ctx context.Context, r forward.Route, shownURL, queue string, body []byte) error {
	target, err := forward.Open(r.Target, &r.Options)
	if err != nil {
		return err
	}
	defer target.Close()
	m := &tarry.Message[[]byte]{Body: body, Info: tarry.Info{
		ID: tarry.ID(p.Now().UnixMicro()), Queue: queue, Due: p.Now(), Created: p.Now(), Attempt: 1,
	}}
	m.ContentType, m.Info.Body, m.MaxAttempts = contentType(body), body, tarry.DefaultMaxAttempts
	began := time.Now()
	err = target.Send(ctx, m)
	took := time.Since(began).Round(time.Millisecond)
	answer := map[string]any{"route": r.Name, "queue": queue, "target": shownURL, "outcome": "taken", "took": tarry.FormatDuration(took)}
	if err != nil {
		if p.json {
			answer["outcome"], answer["error"] = "failed", err.Error()
			_ = p.show(answer, "")
		}
		return failedf(err, "", "%s did not take the message, after %s: %v", shownURL, took, err)
	}
	return p.show(answer, "%s took the message of %s in %s", shownURL, queue, tarry.FormatDuration(took))
}

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

// made returns the route that the settings describe.
func (s routeSettings) made() (r forward.Route, err error) {
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
