package ui_test

import (
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/page"

	"github.com/tarryhq/tarry/internal/demo"
)

var (
	shots   = flag.String("shots", "", "folder to put pictures of the pages into")
	shotsAs = flag.String("shots-as", "webp", "format of the pictures: webp or png")
)

// shoot takes a picture of what is seen.
func (p *tab) shoot(name string) {
	p.Helper()
	shot := tell(p, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormat(*shotsAs), Quality: new(int64(82))})
	if err := os.WriteFile(filepath.Join(*shots, name+"."+*shotsAs), shot.Data, 0o644); err != nil {
		p.Fatal(err)
	}
}

// The pictures of docs/dashboard.md, when asked for: go test ./ui -run Shots -shots ../docs/dashboard.
func TestShots(t *testing.T) {
	if *shots == "" {
		t.Skip("pictures are made with -shots DIR alone")
	}
	shop := demo.New(demo.Speed)
	w := newWorld(t, kind{shop: shop})
	var running sync.WaitGroup
	running.Go(func() { _ = shop.Run(t.Context()) })
	t.Cleanup(running.Wait)
	for _, dark := range []bool{false, true} {
		scheme := "light"
		if dark {
			scheme = "dark"
		}
		p := w.open(look{1280, 800, dark}, "#/")
		p.sees(".queues", "price.import")
		p.sees(".queues .wide", "s, ")
		p.shoot("queues-" + scheme)
		p.to("#/queues/mail.digest")
		p.press(".forecast .segments", "1h")
		p.sees(".forecast .title", "the next 1h")
		p.sees(".heat", "handled")
		p.until(`!!document.querySelector(".u-over")`)
		p.shoot("queue-" + scheme)
		p.to(w.last("order.unpaid"))
		p.sees(".json", "order")
		p.shoot("message-" + scheme)
		p.to("#/queues/order.unpaid?state=finished")
		p.sees(".messages", "handled")
		p.until(`!!document.querySelector(".u-over")`)
		p.shoot("finished-" + scheme)
		p.to("#/dead?queue=merchant.notify")
		p.sees(".groups", "410 Gone")
		p.shoot("dead-" + scheme)
	}
	p := w.open(look{360, 740, false}, "#/queues/mail.digest")
	p.sees(".messages .narrow", "{")
	p.shoot("phone")
}
