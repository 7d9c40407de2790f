package tarryprom

import "github.com/prometheus/client_golang/prometheus"

// Beanstalk is what a server of beanstalkd's protocol counts.
type Beanstalk struct {
	Connections int64             // open
	Waiting     int64             // of these, waiting for a job
	Refused     uint64            // connections beyond the bound, and commands without the right
	Commands    map[string]uint64 // carried out, by verb
}

// WatchBeanstalk also exports what a server of beanstalkd's protocol counts.
func (m *Metrics) WatchBeanstalk(counts func() Beanstalk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beanstalk = counts
}

var (
	beanstalkConnectionsDesc = prometheus.NewDesc("tarry_beanstalk_connections", "Connections of clients of beanstalkd's protocol.", nil, nil)
	beanstalkWaitingDesc     = prometheus.NewDesc("tarry_beanstalk_waiting", "Those of these connections that wait for a job.", nil, nil)
	beanstalkCommandsDesc    = prometheus.NewDesc("tarry_beanstalk_commands_total", "Commands of beanstalkd's protocol that were carried out.", []string{"command"}, nil)
	beanstalkRefusedDesc     = prometheus.NewDesc("tarry_beanstalk_refused_total", "Commands without the right and connections beyond the bound, of clients of beanstalkd's protocol.", nil, nil)
)

func describeBeanstalk(ch chan<- *prometheus.Desc) {
	ch <- beanstalkConnectionsDesc
	ch <- beanstalkWaitingDesc
	ch <- beanstalkCommandsDesc
	ch <- beanstalkRefusedDesc
}

func (m *Metrics) collectBeanstalk(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	counts := m.beanstalk
	m.mu.Unlock()
	if counts == nil {
		return
	}
	n := counts()
	ch <- prometheus.MustNewConstMetric(beanstalkConnectionsDesc, prometheus.GaugeValue, float64(n.Connections))
	ch <- prometheus.MustNewConstMetric(beanstalkWaitingDesc, prometheus.GaugeValue, float64(n.Waiting))
	ch <- prometheus.MustNewConstMetric(beanstalkRefusedDesc, prometheus.CounterValue, float64(n.Refused))
	for verb, times := range n.Commands {
		ch <- prometheus.MustNewConstMetric(beanstalkCommandsDesc, prometheus.CounterValue, float64(times), verb)
	}
}
