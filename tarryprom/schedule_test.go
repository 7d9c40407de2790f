package tarryprom

import "testing"

func TestMetricsOfSchedules(t *testing.T) {
	m := watching(t)
	m.WatchSchedules(func() int { return 3 })
	want(t, values(t, m), map[string]float64{"tarry_schedule_problems{}": 3})
	m.WatchSchedules(nil)
	if n, told := values(t, m)["tarry_schedule_problems{}"]; told {
		t.Errorf("%v are told, though nothing is asked any more", n)
	}
}
