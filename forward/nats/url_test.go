package nats_test

import (
	"testing"

	"github.com/tarryhq/tarry/forward/nats"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/internal/targettest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestURLs(t *testing.T) {
	t.Parallel()
	_, unconfigured := nats.New(nats.Config{}, nil)
	targettest.RefusedURLs(t, "nats", map[string]string{
		"nats://u:geheim@h?subjekt=due":                "subject",
		"nats://u:geheim@h?subject=a.*":                "cannot be published to",
		"nats://u:geheim@h?subject=a..b":               "cannot be published to",
		"nats://u:geheim@h?subject=$JS.API.INFO":       "commands",
		"nats://u:geheim@h/path":                       "an example",
		"nats:":                                        "an example",
		"nats://u:geheim@h?creds_file=/etc/none/there": "not both",
		"tls://h?ca_file=/etc/none/there":              "ca_file",
	}, unconfigured)
}
