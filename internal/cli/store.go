package cli

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/internal/storeurl"
)

// diskFlag returns the name of the flag for an option of a disk store.
func diskFlag(option string) string { return "disk-" + strings.ReplaceAll(option, "_", "-") }

// usualMemory is what a disk store takes by default, and leastMemory what it takes at least.
const usualMemory, leastMemory = 256 << 20, 8 << 20

// servedHistory is how long stores list finished messages unless told otherwise, by the scheme
// of their URL. Others list none: it costs them more (docs/engines).
var servedHistory = map[string]time.Duration{"disk": 24 * time.Hour}

// storeFlags are the store to serve, and options of it as flags. Their values are added to its
// URL, and checked when the URL is read.
type storeFlags struct {
	store   string
	disk    map[string]*string // by option
	history engine.History
}

func (s *storeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	storeFlag(cmd, &s.store, defaultStore, "where messages are stored: disk:DIR, mem: (lost at the end), or the URL of a Redis, PostgreSQL, MySQL or RabbitMQ server, such as redis://127.0.0.1:6379")
	s.disk = make(map[string]*string)
	for _, o := range diskengine.Options() {
		s.disk[o.Name] = f.String(diskFlag(o.Name), "", "of a disk store: "+o.What+"; default "+o.Default)
	}
	f.Var(durationFlag(&s.history.Keep), "history", "list finished messages this long, in queues whose settings do not say; 0: not at all")
	f.Int64Var(&s.history.Max, "history-max", engine.DefaultHistoryMax, "finished messages listed of a queue at most; of more those that ended first are dropped")
}

// url returns the URL of the store with all options. Unless told otherwise, a disk store takes
// no more than a quarter of a limit of memory; limit 0: there is none.
func (s *storeFlags) url(levels map[string]level, limit int64) (string, error) {
	u, err := url.Parse(s.store)
	if err != nil {
		return s.store, nil // opening the store reports the error
	}
	given := make(map[string]string) // by option
	for option, v := range s.disk {
		if *v != "" {
			given[option] = *v
		}
	}
	if len(given) > 0 && u.Scheme != "disk" {
		option := slices.Sorted(maps.Keys(given))[0]
		return "", usagef("leave it out, or serve a store such as disk:tarry-data", "--%s is for disk stores", diskFlag(option))
	}
	if levels["history"] != fromDefault {
		given["history"] = tarry.FormatDuration(s.history.Keep)
	}
	if levels["history-max"] != fromDefault {
		given["history_max"] = strconv.FormatInt(s.history.Max, 10)
	}
	for _, option := range slices.Sorted(maps.Keys(given)) {
		if u.Query().Has(option) {
			flag := strings.ReplaceAll(option, "_", "-")
			if s.disk[option] != nil {
				flag = diskFlag(option)
			}
			return "", usagef("give it in one place", "--%s is given, and %s in the store's URL", flag, option)
		}
		addOption(u, option, given[option])
	}
	if keep, usual := servedHistory[u.Scheme]; usual && !u.Query().Has("history") {
		addOption(u, "history", tarry.FormatDuration(keep))
	}
	if quarter := max(limit/4, leastMemory); u.Scheme == "disk" && limit > 0 && quarter < usualMemory && !u.Query().Has("memory") {
		addOption(u, "memory", strconv.FormatInt(quarter, 10))
	}
	return u.String(), nil
}

// diskDir returns the directory of a disk store, without its options, and whether store is
// one.
func diskDir(store string) (dir string, ok bool) {
	u, err := url.Parse(store)
	if err != nil || u.Scheme != "disk" {
		return "", false
	}
	dir = storeurl.New(u).Path()
	return dir, dir != ""
}

// addOption adds an option to the URL of a store.
func addOption(u *url.URL, name, value string) {
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += name + "=" + url.QueryEscape(value)
}
