package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each case has exactly one source that names the live server; all others name a
// port where nobody listens, so the command works only if that source wins.
func TestPrecedence(t *testing.T) {
	w, _ := served(t, "mem:")
	live, _ := w.program(nil, nil).env("TARRY_SERVER")
	const gone = "http://127.0.0.1:1"
	liveConfig := write(t, "live.json", `{"server": "`+live+`", "json": true, "drain": "5s"}`)
	goneConfig := write(t, "gone.json", `{"server": "`+gone+`"}`)
	liveFile, goneFile := write(t, "live", live+"\n"), write(t, "gone", gone)
	for name, c := range map[string]struct {
		env  []string
		args []string
		code int
	}{
		"flag before all":          {[]string{"TARRY_SERVER=" + gone}, []string{"--server", live, "--config", goneConfig}, exitOK},
		"environment before file":  {[]string{"TARRY_SERVER=" + live}, []string{"--config", goneConfig}, exitOK},
		"file before default":      {nil, []string{"--config", liveConfig}, exitOK},
		"config in environment":    {[]string{"TARRY_CONFIG=" + liveConfig}, nil, exitOK},
		"file flag":                {[]string{"TARRY_SERVER=" + gone}, []string{"--server-file", liveFile}, exitOK},
		"flag before file flag":    {[]string{"TARRY_SERVER_FILE=" + goneFile}, []string{"--server", live}, exitOK},
		"file in environment":      {[]string{"TARRY_SERVER_FILE=" + liveFile}, []string{"--config", goneConfig}, exitOK},
		"store flag before server": {[]string{"TARRY_SERVER=" + gone}, []string{"--store", "mem:"}, exitOK},
		"server flag before store": {[]string{"TARRY_STORE=nowhere:"}, []string{"--server", live}, exitOK},
		"store in environment":     {[]string{"TARRY_STORE=mem:"}, []string{"--config", goneConfig}, exitOK},
		"both in environment":      {[]string{"TARRY_STORE=nowhere:", "TARRY_SERVER=" + live}, nil, exitOK},
		"store file":               {nil, []string{"--store-file", write(t, "store", "mem:\n")}, exitOK},
		"wrong one wins":           {[]string{"TARRY_SERVER=" + live}, []string{"--server", gone}, exitUnavailable},
		"empty is not set":         {[]string{"TARRY_SERVER="}, []string{"--config", liveConfig}, exitOK},
		"flags of calls are not settings": {[]string{"TARRY_SERVER=" + live, "TARRY_KEY=k", "TARRY_ID=7", "TARRY_STATE=dead"},
			nil, exitOK},
	} {
		t.Run(name, func(t *testing.T) {
			o := world{env: c.env}.tarry(t, append([]string{"queues"}, c.args...)...)
			if o.code != c.code {
				t.Errorf("exit code %d, want %d: %s", o.code, c.code, o.stderr)
			}
		})
	}
	t.Run("a boolean from a file", func(t *testing.T) {
		w := world{}
		w.must(t, "push", "mail", "x", "--config", liveConfig)
		object(t, w.must(t, "queues", "--config", liveConfig))
	})
}

func TestWrongConfiguration(t *testing.T) {
	for content, want := range map[string]string{
		`{"sever": "x"}`:                    `tarry: \S+: unknown setting "sever" \(known are server, .*\)\n`,
		`{"server": ["x"]}`:                 `tarry: \S+: server is not a string, number or boolean .*\n`,
		`{"timeout": "x"}`:                  `tarry: \S+: timeout: "x" is not a duration.*\n`,
		`{"json": "perhaps`:                 `tarry: \S+: line 1: it ends too early at /json \(a configuration looks like .*\n`,
		`{} {}`:                             `tarry: \S+: line 1: invalid character '{' after top-level value .*\n`,
		`server = localhost`:                `tarry: \S+: line 1: invalid character .*\n`,
		``:                                  `tarry: \S+: line 1: it ends too early .*\n`,
		`["server"]`:                        `tarry: \S+: it is not an object .*\n`,
		"{\n\"server\": 1,\n\"server\": 2}": `tarry: \S+: line 3: duplicate object member name at /server .*\n`,
	} {
		run1(t, world{env: []string{"TARRY_TIMEOUT="}}, step{args: "queues --config " + write(t, "c.json", content), code: exitUsage, stderr: want})
	}
	for _, s := range []step{
		{args: "queues --config /no/such/file", stderr: `tarry: --config: open /no/such/file: .*\n`},
		{args: "queues --server-file /no/such/file", stderr: `tarry: --server-file: open /no/such/file: .*\n`},
		{args: "queues --server-file " + write(t, "empty", "\n"), stderr: `tarry: the file \S+ is empty .*\n`},
		{args: "queues --server http://127.0.0.1:1 --server-file " + write(t, "u", "http://127.0.0.1:1"), stderr: `tarry: both server and server-file are given .*\n`},
	} {
		s.code = exitUsage
		run1(t, world{}, s)
	}
	run1(t, world{env: []string{"TARRY_TIMEOUT=never"}}, step{args: "queues", code: exitUsage, stderr: `tarry: TARRY_TIMEOUT: "never" is not a duration.*\n`})
}
