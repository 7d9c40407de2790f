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

// diskFlags are the options of a disk store as flags. Their values are added to the store's
// URL, and checked when the URL is read.
type diskFlags struct{ values map[string]*string } // by option

// diskFlag returns the name of an option's flag.
func diskFlag(option string) string { return "disk-" + strings.ReplaceAll(option, "_", "-") }

func (d *diskFlags) add(cmd *cobra.Command) {
	d.values = make(map[string]*string)
	for _, o := range diskengine.Options() {
		d.values[o.Name] = cmd.Flags().String(diskFlag(o.Name), "", "of a disk store: "+o.What+"; default "+o.Default)
	}
}

// usualMemory is what a disk store takes by default, and leastMemory what it takes at least.
const usualMemory, leastMemory = 256 << 20, 8 << 20

// fit has a disk store take no more than a quarter of a limit of memory, unless its URL or a flag
// says how much; limit 0: there is none.
func (d *diskFlags) fit(store string, limit int64) {
	u, err := url.Parse(store)
	v := d.values["memory"]
	if err != nil || u.Scheme != "disk" || u.Query().Has("memory") || v == nil || *v != "" || limit == 0 {
		return
	}
	if quarter := max(limit/4, leastMemory); quarter < usualMemory {
		*v = strconv.FormatInt(quarter, 10)
	}
}

// on returns the URL of a store with the options that the flags add.
func (d *diskFlags) on(store string) (string, error) {
	u, err := url.Parse(store)
	if err != nil {
		return store, nil // opening the store reports the error
	}
	for _, option := range slices.Sorted(maps.Keys(d.values)) {
		v := *d.values[option]
		switch {
		case v == "":
			continue
		case u.Scheme != "disk":
			return "", usagef("leave it out, or serve a store such as disk:tarry-data", "--%s is for disk stores", diskFlag(option))
		case u.Query().Has(option):
			return "", usagef("give it in one place", "--%s is given, and %s in the store's URL", diskFlag(option), option)
		}
		addOption(u, option, v)
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

// historyFlags are the history of a store as flags. They are added to the store's URL.
type historyFlags struct{ engine.History }

// servedHistory is how long stores list finished messages unless told otherwise, by the scheme
// of their URL. Others list none: it costs them more (docs/engines).
var servedHistory = map[string]time.Duration{"disk": 24 * time.Hour}

func (h *historyFlags) add(cmd *cobra.Command) {
	cmd.Flags().Var(durationFlag(&h.Keep), "history", "list finished messages this long, in queues whose settings do not say; 0: not at all")
	cmd.Flags().Int64Var(&h.Max, "history-max", engine.DefaultHistoryMax, "finished messages listed of a queue at most; of more those that ended first are dropped")
}

// on returns the URL of a store with the history that the flags add.
func (h *historyFlags) on(store string, levels map[string]level) (string, error) {
	u, err := url.Parse(store)
	if err != nil {
		return store, nil // opening the store reports the error
	}
	keep, usual := h.Keep, false
	if levels["history"] == fromDefault {
		keep, usual = servedHistory[u.Scheme]
	}
	for _, o := range []struct {
		flag, option, value string
		usual               bool
	}{
		{"history", "history", tarry.FormatDuration(keep), usual},
		{"history-max", "history_max", strconv.FormatInt(h.Max, 10), false},
	} {
		given, has := levels[o.flag] != fromDefault, u.Query().Has(o.option)
		switch {
		case given && has:
			return "", usagef("give it in one place", "--%s is given, and %s in the store's URL", o.flag, o.option)
		case given || o.usual && !has:
			addOption(u, o.option, o.value)
		}
	}
	return u.String(), nil
}

// addOption adds an option to the URL of a store.
func addOption(u *url.URL, name, value string) {
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += name + "=" + url.QueryEscape(value)
}
