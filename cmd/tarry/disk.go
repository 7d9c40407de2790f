package main

import (
	"net/url"

	"github.com/spf13/cobra"
)

// diskFlags are the options of a disk store as flags: what they say is added to the
// store's URL, whose reader checks it.
type diskFlags struct{ values []string }

// diskOptions are flags and what they are called in a URL.
var diskOptions = []struct{ flag, option, usage string }{
	{"disk-cache", "cache", "of a disk store: memory for what is read, such as 1GiB; default 64MiB"},
	{"disk-mem-table", "mem_table", "of a disk store: one of four tables in memory of what was just written; default 16MiB"},
	{"disk-max-pending", "max_pending", "of a disk store: messages kept at most, 0 for no limit; default 0"},
	{"disk-min-free", "min_free", "of a disk store: free space below which pushes fail, 0 for none; default 256MiB"},
	{"disk-ballast", "ballast", "of a disk store: space kept for what ends messages on a full disk, 0 for none; default 64MiB"},
	{"disk-retry-for", "retry_for", "of a disk store: how long a failed write is tried again before the store stops, 0s for not at all; default 1m"},
	{"disk-close-timeout", "close_timeout", "of a disk store: how long to wait at the end for a disk that does not answer; default 20s"},
}

func (d *diskFlags) add(cmd *cobra.Command) {
	d.values = make([]string, len(diskOptions))
	for i, o := range diskOptions {
		cmd.Flags().StringVar(&d.values[i], o.flag, "", o.usage)
		asSetting(cmd, o.flag)
	}
}

// on returns the URL of a store with the options that flags add.
func (d *diskFlags) on(store string) (string, error) {
	u, err := url.Parse(store)
	if err != nil {
		return store, nil // whoever opens it says what is wrong
	}
	for i, o := range diskOptions {
		v := d.values[i]
		switch {
		case v == "":
			continue
		case u.Scheme != "disk":
			return "", usagef("leave it out, or serve a store such as disk:tarry-data", "--%s is for disk stores", o.flag)
		case u.Query().Has(o.option):
			return "", usagef("give it in one place", "--%s is given, and %s in the store's URL", o.flag, o.option)
		}
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += o.option + "=" + url.QueryEscape(v)
	}
	return u.String(), nil
}
