package tarryprom

import (
	"testing"

	"github.com/tarryhq/tarry/intake"
)

func TestMetricsOfIntakes(t *testing.T) {
	m := watching(t)
	m.WatchIntakes(func() []intake.Status {
		up := intake.Status{Name: "shop", Queue: "orders", State: intake.Running, Unacked: 7}
		up.Counts = intake.Counts{Taken: 60, Pushed: 30, Doubles: 2, Cancelled: 3, Missed: 4, Refused: 5, Redelivered: 6, Doubtful: 8}
		return []intake.Status{up, {Name: "mail", Queue: "mail", State: intake.Failing}, {Name: "new", Queue: "mail", State: intake.Connecting}}
	})
	const shop = `{intake="shop",queue="orders"}`
	settled := func(result string) string {
		return `tarry_intake_settled_total{intake="shop",queue="orders",result="` + result + `"}`
	}
	want(t, values(t, m), map[string]float64{
		"tarry_intake_up" + shop: 1, `tarry_intake_up{intake="mail",queue="mail"}`: 0, `tarry_intake_up{intake="new",queue="mail"}`: 0,
		"tarry_intake_unacked" + shop: 7, "tarry_intake_taken_total" + shop: 60,
		settled("pushed"): 30, settled("double"): 2, settled("cancelled"): 3, settled("missed"): 4, settled("refused"): 5,
		"tarry_intake_redelivered_total" + shop: 6, "tarry_intake_doubtful_total" + shop: 8,
	})
}
