package tarryprom

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarryhq/tarry"
)

var (
	messagesDesc = prometheus.NewDesc("tarry_messages", "Messages by state.", []string{"queue", "state"}, nil)
	oldestDesc   = prometheus.NewDesc("tarry_oldest_ready_seconds", "How long the oldest ready message has been due; 0: none is ready.", []string{"queue"}, nil)
	nextDesc     = prometheus.NewDesc("tarry_next_due_timestamp_seconds", "When the next scheduled message falls due.", []string{"queue"}, nil)
	forecastDesc = prometheus.NewDesc("tarry_forecast_messages", "Messages that fall due within the next minute, hour and day.", []string{"queue", "within"}, nil)
	pausedDesc   = prometheus.NewDesc("tarry_paused", "Whether the queue is paused.", []string{"queue"}, nil)
	queuesDesc   = prometheus.NewDesc("tarry_queues", "Queues that hold something, are paused or have settings.", nil, nil)
	upDesc       = prometheus.NewDesc("tarry_store_up", "Whether the last collection from the store succeeded; for an engine that cannot list, whether its last call did.", nil, nil)
	tookDesc     = prometheus.NewDesc("tarry_collection_seconds", "Duration of that collection.", nil, nil)
	atDesc       = prometheus.NewDesc("tarry_collection_timestamp_seconds", "Time of the last collection of what the store holds.", nil, nil)

	stateDescs = []*prometheus.Desc{messagesDesc, oldestDesc, nextDesc, forecastDesc, pausedDesc, queuesDesc, upDesc, tookDesc, atDesc}
)

// collection is what a store held at one time.
type collection struct {
	at     time.Time
	took   time.Duration
	count  int
	queues map[string]*holding
}

// holding is what one queue holds, or all queues without series of their own together.
type holding struct {
	tarry.QueueInfo
	forecast []float64 // for each horizon; nil: unknown
}

// add adds what a queue holds.
func (h *holding) add(i *tarry.QueueInfo) {
	h.Scheduled += i.Scheduled
	h.Ready += i.Ready
	h.Leased += i.Leased
	h.Dead += i.Dead
	h.Finished += i.Finished
	h.NextDue = earlier(h.NextDue, i.NextDue)
	h.OldestReady = earlier(h.OldestReady, i.OldestReady)
	h.Paused = i.Paused
}

// earlier returns the earlier of two times; a zero time counts as none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// freshest returns the latest collection, and starts a new one if that is old. Concurrent
// scrapes share it; each waits for its end, but no longer than Config.Timeout.
func (m *Metrics) freshest() (c *collection, up, watched bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == nil {
		return nil, false, false
	}
	if !m.client.Capabilities().Count {
		return nil, !m.failing.Load(), true
	}
	if m.collecting == nil && (m.lastBegan.IsZero() || time.Since(m.lastBegan) >= m.cfg.Every) {
		m.collecting, m.lastBegan = make(chan struct{}), time.Now()
		go m.collect(m.client, m.collecting)
	}
	if under := m.collecting; under != nil {
		m.mu.Unlock()
		timer := time.NewTimer(m.cfg.Timeout)
		select {
		case <-under:
		case <-timer.C:
		}
		timer.Stop()
		m.mu.Lock()
	}
	return m.latest, m.lastComplete, true
}

// collect asks the store, and ends soon after Config.Timeout.
func (m *Metrics) collect(client *tarry.Client, over chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.Timeout)
	defer cancel()
	c, err := m.ask(ctx, client)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == client {
		if m.lastComplete = err == nil; m.lastComplete {
			m.latest = c
		}
	}
	m.collecting = nil
	close(over)
}

func (m *Metrics) ask(ctx context.Context, client *tarry.Client) (*collection, error) {
	c := &collection{at: time.Now(), queues: make(map[string]*holding)}
	for q, err := range client.AllQueues(ctx) {
		if err != nil {
			return nil, err
		}
		name := m.all.of(q.Queue).queue
		h := c.queues[name]
		if h == nil {
			h = new(holding)
			c.queues[name] = h
		}
		h.add(&q)
		c.count++
	}
	if client.Capabilities().Forecast {
		for name, h := range c.queues {
			if name == Other {
				continue
			}
			if h.Scheduled+h.Ready == 0 {
				h.forecast = make([]float64, len(horizons))
				continue
			}
			// A forecast that takes too long is left out; the rest is still valid.
			if f, err := client.Forecast(ctx, name, time.Minute, foresight); err == nil {
				h.forecast = forecast(f.Buckets, c.at)
			}
		}
	}
	c.took = time.Since(c.at)
	return c, nil
}

// horizons are how far the forecasts look.
var horizons = [...]struct {
	name string
	span time.Duration
}{{"1m", time.Minute}, {"1h", time.Hour}, {"1d", 24 * time.Hour}}

// foresight is the span to ask for. It is one minute longer, since now lies within a minute.
const foresight = 24*time.Hour + time.Minute

// forecast counts what becomes due from now on within each horizon. The minutes at both ends
// count proportionally.
func forecast(buckets []tarry.Bucket, now time.Time) []float64 {
	out := make([]float64, len(horizons))
	for i := range buckets {
		if buckets[i].Count == 0 {
			continue
		}
		from := buckets[i].From
		for j, h := range horizons {
			share := min(from.Add(time.Minute).Sub(now), now.Add(h.span).Sub(from), time.Minute)
			out[j] += float64(buckets[i].Count) * max(0, share.Minutes())
		}
	}
	return out
}

func (m *Metrics) collectStore(ch chan<- prometheus.Metric) {
	c, up, watched := m.freshest()
	if !watched {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(upDesc, flag(up))
	if c == nil {
		return
	}
	gauge(queuesDesc, float64(c.count))
	gauge(tookDesc, c.took.Seconds())
	gauge(atDesc, seconds(c.at))
	for name, h := range c.queues {
		for state, n := range map[tarry.State]int64{
			tarry.Scheduled: h.Scheduled, tarry.Ready: h.Ready, tarry.Leased: h.Leased, tarry.Dead: h.Dead, tarry.Finished: h.Finished,
		} {
			gauge(messagesDesc, float64(n), name, state.String())
		}
		age := time.Duration(0)
		if !h.OldestReady.IsZero() {
			age = max(0, time.Since(h.OldestReady))
		}
		gauge(oldestDesc, age.Seconds(), name)
		if !h.NextDue.IsZero() {
			gauge(nextDesc, seconds(h.NextDue), name)
		}
		if name != Other {
			gauge(pausedDesc, flag(h.Paused), name)
		}
		for i := range h.forecast {
			gauge(forecastDesc, h.forecast[i], name, horizons[i].name)
		}
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
