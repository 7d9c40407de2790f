package kafka_test

import (
	"testing"

	"github.com/tarryhq/tarry/forward/kafka"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/internal/targettest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestURLs(t *testing.T) {
	t.Parallel()
	_, unconfigured := kafka.New(kafka.Config{}, nil)
	targettest.RefusedURLs(t, "kafka", map[string]string{
		"kafka://u:geheim@h/orders?topic=x":                   "topic",
		"kafka://u:geheim@h/or/ders":                          "invalid",
		"kafka://u:geheim@h/orders?sasl=md5":                  "scram-sha-512",
		"kafka://h/orders?sasl=plain":                         "name the user",
		"kafka://u:geheim@h/orders?max_bytes=1":               "max_bytes",
		"kafka:":                                              "an example",
		"kafka://u:geheim@h/o?password_file=/etc/none/there":  "password_file",
		"kafka+tls://u:geheim@h/orders?ca_file=/etc/no/there": "ca_file",
	}, unconfigured)
}
