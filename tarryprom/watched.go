package tarryprom

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarryhq/tarry/intake"
)

// export exports a value.
type export func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string)

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// also exports at each scrape what ask returns, as tell says; nil: no more.
func also[T any](m *Metrics, name string, ask func() T, tell func(export, T)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watched, name)
	if ask != nil {
		m.watched[name] = func(e export) { tell(e, ask()) }
	}
}

func (m *Metrics) collectWatched(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.watched))
	m.mu.Unlock()
	for _, tell := range all {
		tell(func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, kind, value, labels...)
		})
	}
}

var (
	intakeLabels = []string{"intake", "queue"}

	certificateDesc          = prometheus.NewDesc("tarry_tls_certificate_expiration_timestamp_seconds", "When the certificate of the server expires.", nil, nil)
	beanstalkConnectionsDesc = prometheus.NewDesc("tarry_beanstalk_connections", "Connections of clients of beanstalkd's protocol.", nil, nil)
	beanstalkWaitingDesc     = prometheus.NewDesc("tarry_beanstalk_waiting", "Those of these connections that wait for a job.", nil, nil)
	beanstalkCommandsDesc    = prometheus.NewDesc("tarry_beanstalk_commands_total", "Commands of beanstalkd's protocol that were carried out.", []string{"command"}, nil)
	beanstalkRefusedDesc     = prometheus.NewDesc("tarry_beanstalk_refused_total", "Commands without the right and connections beyond the bound, of clients of beanstalkd's protocol.", nil, nil)
	intakeUpDesc             = prometheus.NewDesc("tarry_intake_up", "Whether an intake takes messages; 0: it fails or connects.", intakeLabels, nil)
	intakeUnackedDesc        = prometheus.NewDesc("tarry_intake_unacked", "Messages that an intake has taken and not settled yet.", intakeLabels, nil)
	intakeTakenDesc          = prometheus.NewDesc("tarry_intake_taken_total", "Messages that an intake has taken from its source.", intakeLabels, nil)
	intakeSettledDesc        = prometheus.NewDesc("tarry_intake_settled_total", "Messages that an intake has settled at its source.", append(intakeLabels, "result"), nil)
	intakeRedeliveredDesc    = prometheus.NewDesc("tarry_intake_redelivered_total", "Messages that an intake has taken again.", intakeLabels, nil)
	intakeDoubtfulDesc       = prometheus.NewDesc("tarry_intake_doubtful_total", "Messages that an intake may have pushed twice.", intakeLabels, nil)
	scheduleProblemsDesc     = prometheus.NewDesc("tarry_schedule_problems", "Schedules that do not fire, or whose last run is dead.", nil, nil)

	watchedDescs = []*prometheus.Desc{
		certificateDesc, beanstalkConnectionsDesc, beanstalkWaitingDesc, beanstalkCommandsDesc, beanstalkRefusedDesc,
		intakeUpDesc, intakeUnackedDesc, intakeTakenDesc, intakeSettledDesc, intakeRedeliveredDesc, intakeDoubtfulDesc, scheduleProblemsDesc,
	}
)

// WatchCertificate also exports the expiry of a server's certificate, as
// server.Certificate.End returns it.
func (m *Metrics) WatchCertificate(end func() time.Time) {
	also(m, "certificate", end, func(e export, at time.Time) { e(certificateDesc, gauge, float64(at.Unix())) })
}

// WatchSchedules also exports how many problems schedules have, as
// server.Server.ScheduleProblems returns it.
func (m *Metrics) WatchSchedules(problems func() int) {
	also(m, "schedules", problems, func(e export, n int) { e(scheduleProblemsDesc, gauge, float64(n)) })
}

// Beanstalk is what a server of beanstalkd's protocol counts.
type Beanstalk struct {
	Connections int64             // open
	Waiting     int64             // of these, waiting for a job
	Refused     uint64            // connections beyond the bound, and commands without the right
	Commands    map[string]uint64 // carried out, by verb
}

// WatchBeanstalk also exports what a server of beanstalkd's protocol counts.
func (m *Metrics) WatchBeanstalk(counts func() Beanstalk) {
	also(m, "beanstalk", counts, func(e export, n Beanstalk) {
		e(beanstalkConnectionsDesc, gauge, float64(n.Connections))
		e(beanstalkWaitingDesc, gauge, float64(n.Waiting))
		e(beanstalkRefusedDesc, counter, float64(n.Refused))
		for verb, times := range n.Commands {
			e(beanstalkCommandsDesc, counter, float64(times), verb)
		}
	})
}

// WatchIntakes also exports what intakes do, as intake.Runner.Status returns it.
func (m *Metrics) WatchIntakes(status func() []intake.Status) {
	also(m, "intakes", status, func(e export, all []intake.Status) {
		for _, i := range all {
			e(intakeUpDesc, gauge, flag(i.State == intake.Running), i.Name, i.Queue)
			e(intakeUnackedDesc, gauge, float64(i.Unacked), i.Name, i.Queue)
			e(intakeTakenDesc, counter, float64(i.Taken), i.Name, i.Queue)
			for result, n := range map[string]int64{"pushed": i.Pushed, "double": i.Doubles, "cancelled": i.Cancelled, "missed": i.Missed, "refused": i.Refused} {
				e(intakeSettledDesc, counter, float64(n), i.Name, i.Queue, result)
			}
			e(intakeRedeliveredDesc, counter, float64(i.Redelivered), i.Name, i.Queue)
			e(intakeDoubtfulDesc, counter, float64(i.Doubtful), i.Name, i.Queue)
		}
	})
}
