package rabbitengine

import (
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func TestURLs(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	ok(t, os.WriteFile(secret, []byte(" p@ss/word\n"), 0o600))
	for _, c := range []struct {
		url, to string
		cfg     Config
	}{
		{url: "amqp://h", to: "amqp://h"},
		{url: "amqp://u:p%40@h:5672/v", to: "amqp://u:p%40@h:5672/v"},
		{url: "amqp://h/?password_file=" + secret, to: "amqp://guest:p%40ss%2Fword@h/"},
		{url: "amqps://u@h/v?password_file=" + secret + "&cacert=/ca.pem", to: "amqps://u:p%40ss%2Fword@h/v?cacertfile=%2Fca.pem"},
		{
			url: "amqp://h/%2F?prefix=p&unit=1s&queues=classic&addr=a:1&addr=b:2&heartbeat=10s", to: "amqp://h/%2F",
			cfg: Config{Prefix: "p", Unit: time.Second, Queues: Classic, Nodes: []string{"a:1", "b:2"}},
		},
		{url: "amqp://h/?delays=30s,2d", to: "amqp://h/", cfg: Config{Delays: []time.Duration{30 * time.Second, 48 * time.Hour}}},
	} {
		u, err := url.Parse(c.url)
		ok(t, err)
		to, _, cfg, err := parse(u)
		if err != nil || to != c.to || !reflect.DeepEqual(*cfg, c.cfg) {
			t.Errorf("%s: %q, %+v, %v", c.url, to, cfg, err)
		}
	}
}

func TestBadURLs(t *testing.T) {
	for raw, hint := range map[string]string{
		"amqp:h":                                 "an example is",
		"amqp://u:hunter2@h/a/b":                 "an example is",
		"amqp://h/v#hunter2":                     "an example is",
		"amqp://u:hunter2@h:99999/":              "port",
		"amqp://h/?unit=5":                       "unit is a duration",
		"amqp://h/?unit=5us":                     "unit",
		"amqp://h/?delays=1s,x":                  "delays are durations",
		"amqp://h/?delays=":                      "delays are durations",
		"amqp://h/?queues=stream":                "quorum or classic",
		"amqp://h/?addr=b":                       "host:port",
		"amqp://h/?heartbeat=1500ms":             "whole seconds",
		"amqp://h/?prefx=hunter2":                `no option "prefx"`,
		"amqp://h/?cacert=/ca.pem":               `no option "cacert"`,
		"amqp://u:hunter2@h/?password_file=/x/y": "password_file",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, _, _, err = parse(u)
		if engine.Code(err) != "invalid" || !strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
