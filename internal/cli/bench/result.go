package bench

import (
	"math"
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
