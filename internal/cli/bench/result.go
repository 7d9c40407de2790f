package bench

import (
	"errors"
	"math"
	"math/bits"
	"net/url"
	"sync/atomic"
	"time"
)

// Result is the measurement of one scenario. Latencies are in milliseconds; 0 means not
// measured. Only some scenarios set the fields with omitempty.
type Result struct {
	Scenario  string  `json:"scenario"`
	Store     string  `json:"store"`
	N         int     `json:"n"`
	Clients   int     `json:"clients"`
	Batch     int     `json:"batch"`
	BodyBytes int     `json:"body_bytes"`
	Seconds   float64 `json:"seconds"`
	OpsPerS   float64 `json:"ops_per_s"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	P999      float64 `json:"p999_ms"`
	Max       float64 `json:"max_ms"`
	Early     int64   `json:"early"`
	Lost      int64   `json:"lost"`
	Dups      int64   `json:"duplicates"`
	RSS       int64   `json:"rss_bytes"`
	Disk      int64   `json:"disk_bytes"`

	Rate              int     `json:"rate,omitempty"`               // lateness: messages due each second
	BackgroundPending int     `json:"background_pending,omitempty"` // far-away messages already in the queue
	BackgroundRate    int     `json:"background_rate,omitempty"`    // pushes a second during the run, as asked for
	BackgroundPushes  float64 `json:"background_per_s,omitempty"`   // and as reached
	BackgroundP99     float64 `json:"background_p99_ms,omitempty"`  // their latency
	BackgroundP999    float64 `json:"background_p999_ms,omitempty"` // likewise
	RSSPerMessage     float64 `json:"rss_per_message,omitempty"`    // pending: more than the empty store took
	DiskPerMessage    float64 `json:"disk_per_message,omitempty"`   // pending
	Verified          string  `json:"verified,omitempty"`           // recover: how missing messages were searched for
	Checked           int     `json:"checked,omitempty"`            // recover: keys searched for one by one
	Counted           int64   `json:"counted,omitempty"`            // recover: pending by the store's counters
	Note              string  `json:"note,omitempty"`               // what the reader must know
}

func (r *Result) latencies(h *histogram) {
	r.P50 = millis(h.quantile(0.50))
	r.P99 = millis(h.quantile(0.99))
	r.P999 = millis(h.quantile(0.999))
	r.Max = millis(time.Duration(h.max.Load()))
}

func (r *Result) took(d time.Duration, ops int) {
	r.Seconds = round(d.Seconds(), 6)
	if d > 0 {
		r.OpsPerS = round(float64(ops)/d.Seconds(), 1)
	}
}

func millis(d time.Duration) float64 { return round(float64(d)/float64(time.Millisecond), 3) }

func round(f float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(f*p) / p
}

// ErrNotEmpty is the error for a disk store in a directory that is not empty.
var ErrNotEmpty = errors.New("the directory of the store is not empty")

// ErrNoRecover is the error of recover if killing the process with the messages is impossible
// or would lose them.
var ErrNoRecover = errors.New("recover needs a durable store that is opened directly, such as disk:DIR or redis://HOST")

// ErrNoRaw is the error of push-raw for a store that is not a server.
var ErrNoRaw = errors.New("push-raw needs a server, such as http://127.0.0.1:8277")

// redact hides the password in a store's URL, and in a server's URL the token, which may be in
// place of the user.
func redact(store string) string {
	u, err := url.Parse(store)
	if err != nil {
		return "(not a URL)"
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		u.User = nil
	}
	return u.Redacted()
}

// Each power of two is divided into this many buckets, so a value is known to 1/128, better
// than one per cent.
const (
	subBits = 7
	subs    = 1 << subBits
)

// histogram counts any number of durations in 64 KiB. Its methods may be called concurrently.
type histogram struct {
	counts [(64 - subBits) * subs]atomic.Int64
	n      atomic.Int64
	max    atomic.Int64
}

// add counts d; a negative d counts as 0.
func (h *histogram) add(d time.Duration) {
	v := max(int64(d), 0)
	h.counts[bucket(v)].Add(1)
	h.n.Add(1)
	for {
		m := h.max.Load()
		if v <= m || h.max.CompareAndSwap(m, v) {
			return
		}
	}
}

// bucket returns the bucket of a value. Each value below 2*subs has its own; above, the
// leading subBits+1 bits decide.
func bucket(v int64) int {
	shift := max(bits.Len64(uint64(v))-subBits-1, 0)
	return shift*subs + int(v>>shift)
}

// upper returns the greatest value of a bucket.
func upper(b int) int64 {
	if b < 2*subs {
		return int64(b)
	}
	shift := b/subs - 1
	return (int64(b-shift*subs)+1)<<shift - 1
}

// quantile returns the value that the share q of all do not exceed; 0 if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	n := h.n.Load()
	if n == 0 {
		return 0
	}
	rank := min(max(int64(q*float64(n)+0.9999999), 1), n)
	for b := range h.counts {
		if rank -= h.counts[b].Load(); rank <= 0 {
			return time.Duration(min(upper(b), h.max.Load()))
		}
	}
	return time.Duration(h.max.Load())
}
