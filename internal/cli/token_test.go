package cli

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/internal/secretfile"
)

// newToken makes a token in a file, and returns the file that holds it.
func newToken(t *testing.T, tokens, name, scopes, queue string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	world{}.must(t, "token", "create", name, "--tokens", tokens, "--scope", scopes, "--queue", queue, "--out", out)
	return out
}

func TestTokenCommands(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	w := world{env: []string{"TARRY_TOKENS=" + tokens}}
	run1(t, w, step{args: "token create shop --scope push,read --queue order.* --queue mail --expires 90d",
		stdout: `tarry_[a-z2-7]{8}_[a-z2-7]{52}\n`, stderr: `tarry: the token shop has the id \S+, and the scopes push,read on order\.\*,mail until TIME\n`})
	out := filepath.Join(t.TempDir(), "ann")
	run1(t, w, step{args: "token create ann --scope admin --out " + out, stderr: `tarry: the token ann .*\n`})
	if info, err := os.Stat(out); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for _, s := range []step{
		{args: "token ls", stdout: `ID  NAME  SCOPES  QUEUES  CREATED  EXPIRES\n\S+  shop  push,read  order\.\*,mail  TIME  TIME\n\S+  ann  admin  \*  TIME  -\n`},
		{args: "token ls --json", stdout: `{"id":"\S+","name":"shop","scopes":\["push","read"\],"queues":\["order\.\*","mail"\],"created":"TIME","expires":"TIME"}\n{"id":"\S+","name":"ann".*}\n`},
		{args: "token create bob --scope work --json", stdout: `{.*"token":"tarry_\w+"}\n`, stderr: `tarry: .*\n`},
		{args: "token revoke shop", stdout: `revoked shop, id \S+\n`},
		{args: "token revoke shop", code: exitNotFound, stderr: `tarry: token revoke shop: not found \(tarry token ls.*\)\n`},
		{args: "token create ann --scope push", code: exitFailed, stderr: `tarry: no token was made: there is a token of the name ann already.*\n`},
		{args: "token create eve --scope push --out " + out, code: exitUsage, stderr: `tarry: --out: .* file exists \(.*\)\n`},
		{args: "token create eve", code: exitUsage, stderr: `tarry: --scope is missing .*\n`},
		{args: "token create eve --scope all", code: exitUsage, stderr: `tarry: --scope: unknown scope "all" .*\n`},
		{args: "token create eve! --scope push", code: exitUsage, stderr: `tarry: the name "eve!" is not .*\n`},
		{args: "token create eve --scope push --queue a!", code: exitUsage, stderr: `tarry: the queues "a!": .*\n`},
		{args: "token", code: exitUsage, stderr: `tarry: tarry token is missing what to do .*\n`},
		{args: "token ls --tokens /nowhere", code: exitUsage, stderr: `tarry: --tokens: .*no such file.*\(tarry token create makes it\)\n`},
	} {
		run1(t, w, s)
	}
	run1(t, world{}, step{args: "token ls", code: exitUsage, stderr: `tarry: --tokens is missing .*\n`})
	if err := os.Chmod(tokens, 0o644); err != nil {
		t.Fatal(err)
	}
	run1(t, w, step{args: "token ls", code: exitFailed, stderr: `tarry: others may read or write \S+, its mode is 0644 \(chmod 600 \S+\)\n`})
	run1(t, w, step{args: "serve --store mem: --http 127.0.0.1:0", code: exitUsage, stderr: `tarry: --tokens: others may read or write \S+, its mode is 0644 .*\n`})
}

func TestServeWithWrongGuard(t *testing.T) {
	_, cert, key := nettest.Certificate(t)
	_, other, _ := nettest.Certificate(t)
	for args, want := range map[string]string{
		"--tls-cert " + cert:                        `of --tls-cert and --tls-key one is missing .*`,
		"--tls-key " + key:                          `of --tls-cert and --tls-key one is missing .*`,
		"--tls-client-ca x":                         `--tls-client-ca needs TLS .*`,
		"--tls-cert " + other + " --tls-key " + key: `--tls-cert, --tls-key.*private key does not match public key.*`,
		"--tls-cert /nowhere --tls-key " + key:      `--tls-cert, --tls-key.*no such file.*`,
		"--tls-cert " + cert + " --tls-key " + key + " --tls-client-ca " + key: `--tls-cert, --tls-key.* has no certificate in PEM.*`,
		"--tokens /nowhere":            `--tokens: there is no file /nowhere \(tarry token create makes it\)`,
		"--tokens /nowhere --insecure": `both --tokens and --insecure are given .*`,
		"--audit-log /nowhere/log":     `--audit-log: .*no such file.*`,
	} {
		run1(t, world{}, step{args: "serve --store mem: --http 127.0.0.1:0 " + args, code: exitUsage, stderr: "tarry: " + want + `\n`})
	}
}

func TestTokenOfAClient(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	file := newToken(t, tokens, "shop", "push", "order.*")
	secret, _ := os.ReadFile(file)
	token := strings.TrimSpace(string(secret))
	audit := filepath.Join(t.TempDir(), "audit")
	s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--tokens", tokens, "--audit-log", audit)
	server := s.stdout.await(t, `listens on (http://\S+)\n(?s:.*)try, with a token in TARRY_TOKEN:\n`)[1]
	w := world{env: []string{"TARRY_SERVER=" + server}}
	with := func(env ...string) world { return world{env: append(env, w.env...)} }
	for name, c := range map[string]struct {
		w    world
		args string
		code int
		err  string
	}{
		"file flag":      {w, "push order.a x --token-file " + file, exitOK, ""},
		"environment":    {with("TARRY_TOKEN=" + token), "push order.a x", exitOK, ""},
		"file in it":     {with("TARRY_TOKEN_FILE=" + file), "push order.a x", exitOK, ""},
		"flag before it": {with("TARRY_TOKEN=x"), "push order.a x --token-file " + file, exitOK, ""},
		"option":         {with("TARRY_TOKEN=x"), "push order.a x --server " + server + "?token_file=" + url.QueryEscape(file), exitOK, ""},
		"both":           {with("TARRY_TOKEN=x", "TARRY_TOKEN_FILE="+file), "push order.a x", exitUsage, "both token and token-file are given .*"},
		"none":           {w, "push order.a x", exitFailed, `open: .*a token is needed.*TARRY_TOKEN.*`},
		"wrong":          {with("TARRY_TOKEN=" + token + "x"), "push order.a x", exitFailed, `open: .*the token is not known here.*`},
		"other queue":    {with("TARRY_TOKEN=" + token), "push mail x", exitFailed, `push mail: .*the token shop may not do this: it needs the scope push on mail.*`},
		"other scope":    {with("TARRY_TOKEN=" + token), "pause order.a", exitFailed, `pause order.a: .*it needs the scope operate on order.a.*`},
		"two words":      {with("TARRY_TOKEN=" + token + "\nx"), "push order.a x", exitUsage, `the token is not one word .*`},
		"on the line":    {w, "push order.a x --token " + token, exitUsage, `a token on the command line can be read by others .*`},
	} {
		o := c.w.tarry(t, strings.Split(c.args, " ")...)
		if o.code != c.code || strings.Contains(o.stderr, token) {
			t.Errorf("%s: exit code %d, want %d: %s", name, o.code, c.code, o.stderr)
		}
		if c.code != exitOK {
			c.w.env = append(c.w.env, "x=")
			run1(t, c.w, step{args: c.args, code: c.code, stderr: "tarry: " + c.err + `\n`})
		}
	}
	if err := os.Chmod(file, 0); err != nil {
		t.Fatal(err)
	}
	s.stderr.await(t, `a request had no valid token.*reason="the token is not known here"`)
	if log := s.stderr.String(); strings.Contains(log, token) {
		t.Errorf("the log tells a token: %s", log)
	}
	if data, err := os.ReadFile(audit); err != nil || !strings.Contains(string(data), `"what":"pause","who":"shop"`) || strings.Contains(string(data), token) {
		t.Errorf("the audit log: %s, %v", data, err)
	}
}

// The binary as operators run it: with TLS and tokens that come and go, and a hang-up.
func TestServeProcessWithTokensAndTLS(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens.json")
	_, cert, key := nettest.Certificate(t)
	_, clientCert, clientKey := nettest.Certificate(t)
	first := newToken(t, tokens, "first", "push,read", "*")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--tokens", tokens,
		"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", clientCert)
	cmd.Env = append(os.Environ(), "TARRY_TEST_MAIN=1")
	stdout, stderr := newAwaited(), newAwaited()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	server := stdout.await(t, `listens on (https://\S+)\n`)[1]
	trust := server + "?" + url.Values{"ca_file": {cert}}.Encode()
	own := server + "?" + url.Values{"ca_file": {cert}, "cert_file": {clientCert}, "key_file": {clientKey}}.Encode()
	world{}.must(t, "push", "mail", "x", "--server", own, "--token-file", first)
	world{}.must(t, "status", "--ready", "--server", own)
	for args, want := range map[string]string{
		"queues --server " + server + " --token-file " + first: `.*certificate signed by unknown authority.*`,
		"queues --server " + trust + " --token-file " + first:  `.*certificate required.*`,
	} {
		run1(t, world{}, step{args: args, code: exitUnavailable, stderr: "tarry: open: " + want + `\n`})
	}
	run1(t, world{}, step{args: "status --ready --server " + own, stdout: `ready\n`})
	run1(t, world{}, step{args: "status --ready --server " + trust, code: exitUnavailable, stderr: `tarry: status: .*certificate required.*\n`})
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil { // it goes on
		t.Fatal(err)
	}
	second := newToken(t, tokens, "second", "read", "*")
	world{}.must(t, "token", "revoke", "first", "--tokens", tokens)
	time.Sleep(secretfile.CheckInterval)
	world{}.must(t, "queues", "--server", own, "--token-file", second)
	run1(t, world{}, step{args: "queues --server " + own + " --token-file " + first, code: exitFailed, stderr: `tarry: open: .*the token is not known here.*\n`})
	stderr.await(t, `"what":"token revoke","token":"first"`)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
}

func TestServeSaysThatTokensCanBeRead(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	newToken(t, tokens, "a", "push", "*")
	s := world{}.start(t, "serve", "--store", "mem:", "--http", ":0", "--tokens", tokens)
	s.stderr.await(t, `:0 \(\S+\) can be reached from other machines without TLS`)
}
