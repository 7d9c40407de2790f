package cli

import (
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

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
