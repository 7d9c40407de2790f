package cli

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

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
