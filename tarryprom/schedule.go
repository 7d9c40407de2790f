package tarryprom

import "github.com/prometheus/client_golang/prometheus"

// WatchSchedules also exports how many problems schedules have, as
// server.Server.ScheduleProblems returns it.
func (m *Metrics) WatchSchedules(problems func() int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.schedules = problems
}

var scheduleProblemsDesc = prometheus.NewDesc("tarry_schedule_problems", "Schedules that do not fire, or whose last run is dead.", nil, nil)

func (m *Metrics) collectSchedules(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	problems := m.schedules
	m.mu.Unlock()
	if problems != nil {
		ch <- prometheus.MustNewConstMetric(scheduleProblemsDesc, prometheus.GaugeValue, float64(problems()))
	}
}
