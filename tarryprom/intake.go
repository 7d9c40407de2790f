package tarryprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarryhq/tarry/intake"
)

// WatchIntakes also exports what intakes do, as intake.Runner.Status returns it.
func (m *Metrics) WatchIntakes(status func() []intake.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.intakes = status
}

var (
	intakeLabels          = []string{"intake", "queue"}
	intakeUpDesc          = prometheus.NewDesc("tarry_intake_up", "Whether an intake takes messages; 0: it fails or connects.", intakeLabels, nil)
	intakeUnackedDesc     = prometheus.NewDesc("tarry_intake_unacked", "Messages that an intake has taken and not settled yet.", intakeLabels, nil)
	intakeTakenDesc       = prometheus.NewDesc("tarry_intake_taken_total", "Messages that an intake has taken from its source.", intakeLabels, nil)
	intakeSettledDesc     = prometheus.NewDesc("tarry_intake_settled_total", "Messages that an intake has settled at its source.", append(intakeLabels, "result"), nil)
	intakeRedeliveredDesc = prometheus.NewDesc("tarry_intake_redelivered_total", "Messages that an intake has taken again.", intakeLabels, nil)
	intakeDoubtfulDesc    = prometheus.NewDesc("tarry_intake_doubtful_total", "Messages that an intake may have pushed twice.", intakeLabels, nil)
)

func describeIntakes(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{intakeUpDesc, intakeUnackedDesc, intakeTakenDesc, intakeSettledDesc, intakeRedeliveredDesc, intakeDoubtfulDesc} {
		ch <- d
	}
}

func (m *Metrics) collectIntakes(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	status := m.intakes
	m.mu.Unlock()
	if status == nil {
		return
	}
	for _, i := range status() {
		gauge := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, i.Name, i.Queue)
		}
		count := func(d *prometheus.Desc, n int64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{i.Name, i.Queue}, labels...)...)
		}
		gauge(intakeUpDesc, flag(i.State == intake.Running))
		gauge(intakeUnackedDesc, float64(i.Unacked))
		count(intakeTakenDesc, i.Taken)
		for result, n := range map[string]int64{"pushed": i.Pushed, "double": i.Doubles, "cancelled": i.Cancelled, "missed": i.Missed, "refused": i.Refused} {
			count(intakeSettledDesc, n, result)
		}
		count(intakeRedeliveredDesc, i.Redelivered)
		count(intakeDoubtfulDesc, i.Doubtful)
	}
}
