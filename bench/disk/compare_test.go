//go:build linux

package disk

import (
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

var (
	storeURL   = flag.String("url", "disk:DIR", "the store that is measured, with DIR for its directory")
	turns      = flag.Int("turns", 3, "how often the systems take turns")
	pushes     = flag.Int("pushes", 200_000, "messages of each turn of single pushes, and of cancels")
	million    = flag.Int("million", 1_000_000, "messages of each turn of pushes in batches")
	largeBytes = flag.Int("large-bytes", 1<<30, "bytes of each turn of large bodies")
	lateFor    = flag.Duration("late-for", 10*time.Second, "how long each turn of lateness lasts")
)

// measuredStore is the system that does all, and pushing is who pushes.
func measuredStore() system { return system{"store", *storeURL} }

func pushing() []system { return []system{{"bare", "bare:DIR"}, measuredStore()} }

// alone is the store with nothing beside it.
func alone() []system { return []system{measuredStore()} }

// take has systems run a job in turn, again and again, and reports what each says. param
// names the way in which they do.
func take(b *testing.B, systems []system, param, job string, n int, args ...string) {
	for turn := range *turns {
		for _, s := range order(systems, turn) {
			b.Run("impl="+s.name+param, func(b *testing.B) {
				report(b, start(b, s, job, n, args...).figures(b))
			})
		}
	}
}

// order lets each be the first in turn: the machine may grow slower within one.
func order[T any](all []T, turn int) []T {
	at := turn % len(all)
	return append(append([]T(nil), all[at:]...), all[:at]...)
}

func report(b *testing.B, figures map[string]float64) {
	for unit, v := range figures {
		if unit != "ns/op" {
			scenario.Report(b, v, unit)
		}
	}
}

var kindsOfKeys = []string{"order", "random"}

func BenchmarkPush(b *testing.B) {
	scenario.Once(b)
	for _, clients := range []int{64, 512} {
		for _, keys := range kindsOfKeys {
			take(b, pushing(), fmt.Sprintf("/clients=%d,keys=%s", clients, keys), "push", *pushes, "-clients", strconv.Itoa(clients), "-keys", keys)
		}
	}
}

// BenchmarkBodies pushes large bodies: on both sides of 64 KiB, up to which a memtable has slots
// for each size, and of a mebibyte.
func BenchmarkBodies(b *testing.B) {
	scenario.Once(b)
	small := *scenario.BodySize
	defer func() { *scenario.BodySize = small }()
	for turn := range *turns {
		for _, size := range order([]int{60_000, 70_000, 1 << 20}, turn) {
			*scenario.BodySize = size
			for _, s := range order(pushing(), turn) {
				b.Run(fmt.Sprintf("impl=%s/body=%d", s.name, size), func(b *testing.B) {
					f := start(b, s, "push", *largeBytes/size, "-clients", strconv.Itoa(largeClients)).figures(b)
					f["MB/s"] = f["msgs/s"] * float64(size) / 1e6
					report(b, f)
				})
			}
		}
	}
}

const (
	largeClients = 16 // who push large bodies
	fewClients   = 8  // who push in batches
	batchSize    = 100
)

func BenchmarkBatch(b *testing.B) {
	scenario.Once(b)
	for _, clients := range []int{fewClients, scenario.Clients} {
		for _, keys := range kindsOfKeys {
			take(b, pushing(), fmt.Sprintf("/clients=%d,keys=%s", clients, keys), "push", *million, "-clients", strconv.Itoa(clients), "-batch", strconv.Itoa(batchSize), "-keys", keys)
		}
	}
}

// BenchmarkBehind has the store pushed to beside a bare log behind a client too.
func BenchmarkBehind(b *testing.B) {
	scenario.Once(b)
	systems := []system{{"behind", "behind:DIR"}, measuredStore()}
	for _, clients := range []int{64, 512} {
		take(b, systems, fmt.Sprintf("/clients=%d", clients), "push", *pushes, "-clients", strconv.Itoa(clients))
	}
	take(b, systems, "/batch="+strconv.Itoa(batchSize), "push", *million, "-clients", strconv.Itoa(fewClients), "-batch", strconv.Itoa(batchSize))
}

func BenchmarkCancel(b *testing.B) {
	scenario.Once(b)
	for _, keys := range kindsOfKeys {
		take(b, alone(), "/keys="+keys, "cancel", *pushes, "-keys", keys)
	}
}

func BenchmarkBurst(b *testing.B) {
	scenario.Once(b)
	take(b, alone(), "", "burst", 1, "-burst", strconv.Itoa(*scenario.BurstSize))
}

func BenchmarkLateness(b *testing.B) {
	scenario.Once(b)
	take(b, alone(), "", "lateness", 1, "-rate", "5000", "-span", lateFor.String())
}

func BenchmarkChurn(b *testing.B) {
	scenario.Once(b)
	take(b, alone(), "/batch=1", "churn", *pushes)
	take(b, alone(), "/batch="+strconv.Itoa(batchSize), "churn", *million, "-clients", strconv.Itoa(fewClients), "-batch", strconv.Itoa(batchSize))
}
