package ui_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/page"
)

var shots = flag.String("shots", "", "folder to put pictures of the pages into")

// shoot takes a picture of what is seen.
func (p *tab) shoot(name string) {
	p.Helper()
	shot := tell(p, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
	if err := os.WriteFile(filepath.Join(*shots, name), shot.Data, 0o644); err != nil {
		p.Fatal(err)
	}
}

// The pictures of docs/dashboard.md, when asked for: go test ./ui -run Shots -shots docs/dashboard.
func TestShots(t *testing.T) {
	if *shots == "" {
		t.Skip("pictures are made with -shots DIR alone")
	}
	w := newWorld(t, kind{})
	w.seed(t, 2000)
	p := w.open(desk, "#/")
	p.sees("h1", "Queues")
	p.sees(".queues", "import.nightly")
	p.shoot("overview.png")
	p.to("#/queues/order.unpaid")
	p.sees("h1", "order.unpaid")
	p.sees(".after", "Show more")
	p.shoot("queue.png")
	p.to("#/dead?queue=webhook.out")
	p.sees(".groups", "410 Gone")
	p.shoot("dead.png")
	p.to("#/queues/order.unpaid/messages/1")
	p.sees(".json", "order")
	p.shoot("message.png")
}
