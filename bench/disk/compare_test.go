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
	logURL    = flag.String("log", "disk:DIR?store=log", "the store that is measured, with DIR for its directory")
	pebbleURL = flag.String("pebble", "disk:DIR", "the one beside; \"\": none")
	turns     = flag.Int("turns", 3, "how often the systems take turns")
	pushes    = flag.Int("pushes", 200_000, "messages of each turn of single pushes, and of cancels")
	million   = flag.Int("million", 1_000_000, "messages of each turn of pushes in batches")
	lateFor   = flag.Duration("late-for", 10*time.Second, "how long each turn of lateness lasts")
)

// stores are the systems that do all, and pushing is who pushes.
func stores() (s []system) {
	if *pebbleURL != "" {
		s = append(s, system{"pebble", *pebbleURL})
	}
	return append(s, system{"log", *logURL})
}

func pushing() []system { return append([]system{{"bare", "bare:DIR"}}, stores()...) }

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

const (
	fewClients = 8 // who push in batches
	batchSize  = 100
)

func BenchmarkBatch(b *testing.B) {
	scenario.Once(b)
	for _, keys := range kindsOfKeys {
		take(b, pushing(), "/keys="+keys, "push", *million, "-clients", strconv.Itoa(fewClients), "-batch", strconv.Itoa(batchSize), "-keys", keys)
	}
}

func BenchmarkCancel(b *testing.B) {
	scenario.Once(b)
	for _, keys := range kindsOfKeys {
		take(b, stores(), "/keys="+keys, "cancel", *pushes, "-keys", keys)
	}
}

func BenchmarkBurst(b *testing.B) {
	scenario.Once(b)
	take(b, stores(), "", "burst", 1, "-burst", strconv.Itoa(*scenario.BurstSize))
}

func BenchmarkLateness(b *testing.B) {
	scenario.Once(b)
	take(b, stores(), "", "lateness", 1, "-rate", "5000", "-span", lateFor.String())
}

func BenchmarkChurn(b *testing.B) {
	scenario.Once(b)
	take(b, stores(), "/batch=1", "churn", *pushes)
	take(b, stores(), "/batch="+strconv.Itoa(batchSize), "churn", *million, "-clients", strconv.Itoa(fewClients), "-batch", strconv.Itoa(batchSize))
}
