package ui_test

import (
	"testing"

	"github.com/tarryhq/tarry/internal/demo"
)

func TestZZ(t *testing.T) {
	*shots, *shotsAs = "/tmp/screens-shots", "png"
	shop := demo.New(demo.Speed)
	w := newWorld(t, kind{shop: shop})
	for _, l := range []look{{1280, 800, false}, {360, 740, true}} {
		name := map[bool]string{true: "phone-", false: "desk-"}[l.dark]
		p := w.open(l, "#/")
		p.sees(".queues", "price.import")
		p.shoot(name + "queues")
		p.to("#/queues/subscription.renew")
		p.sees(".messages", "c-")
		p.run(`[...document.querySelectorAll(".messages td.pick input")].slice(0, 3).forEach(e => e.click())`)
		p.sees(".chosen", "3 chosen")
		p.shoot(name + "chosen")
		p.to("#/queues/merchant.notify?state=dead")
		p.sees(".messages", "410 Gone")
		p.shoot(name + "dead")
		p.to("#/dead?queue=merchant.notify")
		p.sees(".groups", "410 Gone")
		p.shoot(name + "groups")
		p.to(w.last("order.unpaid"))
		p.sees(".json", "order")
		p.shoot(name + "message")
	}
}
