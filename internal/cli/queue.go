package cli

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

func (p *Program) queueCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "queue get|set",
		Short: "Show and change settings of a queue: defaults, limits, rate",
		Long: `The settings of a queue are stored with it and apply to everyone who uses it: defaults for
pushes, how long dead messages stay, and limits.`,
	}, "usage: tarry queue get|set QUEUE; tarry queues shows what queues hold", p.queueGetCommand(), p.queueSetCommand())
}

func (p *Program) queueGetCommand() *cobra.Command {
	return p.client(showEmpty, &cobra.Command{
		Use:     "get QUEUE",
		Short:   "Show the settings of a queue, with the defaults",
		Example: "  tarry queue get order.unpaid",
		Args:    exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		s, revision, err := c.Settings(ctx, args[0])
		if err != nil {
			return err
		}
		return p.showSettings(c, args[0], s, revision)
	})
}

func (p *Program) queueSetCommand() *cobra.Command {
	var (
		change   settingFlags
		revision string
	)
	cmd := p.client(makeIt, &cobra.Command{
		Use:   "set QUEUE",
		Short: "Change settings of a queue",
		Long: `Set changes the settings that are named and leaves the others. Limits apply at once,
defaults to later pushes. If somebody else changes the settings at the same time, set tries
once more. With --revision it changes only that revision, else it fails (exit code 4).`,
		Example: `  tarry queue set order.unpaid --rate 100 --in-flight 10 --dead-keep 7d
  tarry queue set order.unpaid --max-attempts 5 --unset rate,burst`,
		Args: exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		queue := args[0]
		if err := change.check(queue); err != nil {
			return err
		}
		given := cmd.Flags().Changed("revision")
		if given && revision == "" {
			return usagef("tarry queue get shows it", "--revision is empty")
		}
		for tries := 1; ; tries++ {
			s, upon, err := c.Settings(ctx, queue)
			if err != nil {
				return err
			}
			if given {
				upon = revision
			}
			change.apply(&s)
			now, err := c.Configure(ctx, queue, s, upon)
			if errors.Is(err, tarry.ErrStale) && !given && tries == 1 {
				continue
			}
			if err != nil {
				return err
			}
			return p.showSettings(c, queue, s, now)
		}
	})
	change.add(cmd)
	cmd.Flags().StringVar(&revision, "revision", "", "change the settings only if this is their revision")
	return cmd
}

// showSettings prints the settings that are set.
func (p *Program) showSettings(c *tarry.Client, queue string, s tarry.Settings, revision string) error {
	if p.json || s.Unset() {
		return p.show(asAPI(func(b []byte) []byte {
			return wire.Configured.Append(b, &wire.Settings{Settings: s, Revision: revision})
		}),
			"nothing is set for %s: defaults hold, and no limits (revision %s)", queue, revision)
	}
	o := p.printer()
	o.head("SETTING", "VALUE", "MEANING")
	limited := false
	for _, q := range queueSettings {
		value := q.text(&s)
		if value == "" {
			continue
		}
		limited = limited || q.shared
		o.row(nil, q.name, value, q.means)
	}
	o.row(nil, "revision", revision, "of these settings, for --revision")
	if limited && c.Capabilities().Shares {
		o.row(nil, "", "", "the store divides limits among its shards: they hold about, not exactly")
	}
	return o.flush()
}

// settingFlags say which settings to change.
type settingFlags struct {
	termFlags
	tarry.Settings
	unset []string
}

func (f *settingFlags) add(cmd *cobra.Command) {
	f.termFlags.add(cmd, "for pushes that do not say; unset: %s")
	s, flags := &f.Settings, cmd.Flags()
	flags.Var(durationFlag(&s.DeadKeep), "dead-keep", "drop dead messages this long after their death (unset: never)")
	flags.Int64Var(&s.DeadMax, "dead-max", 0, "dead messages at most; of more those longest dead are dropped (unset: any number)")
	flags.Var(durationFlag(&s.History), "history", "list finished messages this long; 0: not at all (unset: as the store says)")
	flags.Int64Var(&s.HistoryMax, "history-max", 0, "finished messages listed at most; of more those that ended first are dropped (unset: as the store says)")
	for _, name := range []string{"history", "history-max"} {
		flags.Lookup(name).Annotations = map[string][]string{ofQueues: {}}
	}
	flags.Int64Var(&s.MaxPending, "max-pending", 0, "live messages at most; a push that would make more is refused (unset: any number)")
	flags.Int64Var(&s.InFlight, "in-flight", 0, "messages that workers hold at once, over all of them (unset: any number)")
	flags.Float64Var(&s.Rate, "rate", 0, "messages handed out a second, such as 100 or 0.5 (unset: any number)")
	flags.Int64Var(&s.Burst, "burst", 0, "messages handed out at once when the rate was not used up before (unset: a tenth of a second's)")
	flags.StringSliceVar(&f.unset, "unset", nil, "settings to unset, such as rate,burst; may be repeated")
}

// check refuses flags that make no sense, and normalises the names to unset.
func (f *settingFlags) check(queue string) (err error) {
	if f.Defaults, err = f.get(); err != nil {
		return err
	}
	if f.given("history") && f.History == 0 {
		f.History = tarry.Never
	}
	changes := len(f.unset)
	for i, name := range f.unset {
		f.unset[i] = strings.ReplaceAll(name, "_", "-")
		if !slices.ContainsFunc(queueSettings, func(q queueSetting) bool { return q.name == f.unset[i] }) {
			return usagef("settings are "+settingNames(), "--unset %q is unknown", name)
		}
	}
	for _, q := range queueSettings {
		if !f.given(q.name) {
			continue
		}
		changes++
		switch {
		case slices.Contains(f.unset, q.name):
			return usagef("give one of them", "both --%s and --unset %s are given", q.name, q.name)
		case q.text(&f.Settings) == "" && (q.name == "rate" || q.name == "in-flight"):
			return usagef("tarry pause "+queue+" hands out nothing; --unset "+q.name+" is no limit", "--%s must be more than 0", q.name)
		case q.text(&f.Settings) == "":
			return usagef("--unset "+q.name+" unsets it", "--%s must be more than 0", q.name)
		}
	}
	if changes == 0 {
		return usagef("as in --rate 100 or --unset rate; tarry queue set --help lists all", "nothing to change is named")
	}
	return nil
}

// apply makes the changes in s.
func (f *settingFlags) apply(s *tarry.Settings) {
	for _, q := range queueSettings {
		if slices.Contains(f.unset, q.name) {
			q.field(s).SetZero()
		} else if f.given(q.name) {
			q.field(s).Set(q.field(&f.Settings))
		}
	}
}

// queueSetting is one setting of a queue.
type queueSetting struct {
	name   string // of its flag
	means  string
	shared bool                        // a store with several shards divides it among them
	of     func(s *tarry.Settings) any // a pointer to its field
}

// field returns the setting in s.
func (q *queueSetting) field(s *tarry.Settings) reflect.Value { return reflect.ValueOf(q.of(s)).Elem() }

// text formats the setting in s; "" when it is unset.
func (q *queueSetting) text(s *tarry.Settings) string {
	v := q.field(s)
	if v.IsZero() {
		return ""
	}
	switch v := v.Interface().(type) {
	case time.Duration:
		if v == tarry.Never {
			return "never"
		}
		return tarry.FormatDuration(v)
	case []time.Duration:
		return durationsText(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(reflect.Indirect(v))
}

var queueSettings = []queueSetting{
	{"priority", "of messages whose push says none; lower goes first", false,
		func(s *tarry.Settings) any { return &s.Defaults.Priority }},
	{"max-attempts", "attempts, then a message is dead, unless its push says otherwise", false,
		func(s *tarry.Settings) any { return &s.Defaults.MaxAttempts }},
	{"backoff", "rest after each failed attempt, unless its push says otherwise", false,
		func(s *tarry.Settings) any { return &s.Defaults.Backoff }},
	{"ttr", "a worker may hold a message, unless its push says otherwise", false,
		func(s *tarry.Settings) any { return &s.Defaults.TTR }},
	{"expire-after", "after its due time a message that nobody got is dropped, unless its push says otherwise", false,
		func(s *tarry.Settings) any { return &s.Defaults.ExpireAfter }},
	{"remember", "the key stays known when a message has gone, unless its push says otherwise", false,
		func(s *tarry.Settings) any { return &s.Defaults.Remember }},
	{"isolate", "whether a message that lapsed twice is leased alone, unless its push says otherwise", false,
		func(s *tarry.Settings) any { return &s.Defaults.Isolate }},
	{"dead-keep", "after their death dead messages are dropped", false,
		func(s *tarry.Settings) any { return &s.DeadKeep }},
	{"dead-max", "dead messages stay at most; the longest dead are dropped", true,
		func(s *tarry.Settings) any { return &s.DeadMax }},
	{"history", "finished messages stay listed after their end", false,
		func(s *tarry.Settings) any { return &s.History }},
	{"history-max", "finished messages stay listed at most; those that ended first are dropped", true,
		func(s *tarry.Settings) any { return &s.HistoryMax }},
	{"max-pending", "live messages at most; a push that would make more is refused", true,
		func(s *tarry.Settings) any { return &s.MaxPending }},
	{"in-flight", "messages at most are held by workers at once", true,
		func(s *tarry.Settings) any { return &s.InFlight }},
	{"rate", "messages at most are handed out a second", true,
		func(s *tarry.Settings) any { return &s.Rate }},
	{"burst", "messages at most are handed out at once", true,
		func(s *tarry.Settings) any { return &s.Burst }},
}

func settingNames() string {
	var names []string
	for _, q := range queueSettings {
		names = append(names, q.name)
	}
	return strings.Join(names, ", ")
}

// orNothing formats a duration; "" for 0.
func orNothing(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return tarry.FormatDuration(d)
}
