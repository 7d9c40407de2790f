package cli

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/internal/nettest"
)

// jobs is a client of beanstalkd.
type jobs struct {
	*testing.T
	conn net.Conn
	in   *bufio.Reader
}

// dialJobs connects to an address as serve prints it.
func dialJobs(t *testing.T, address string) *jobs {
	t.Helper()
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return newJobs(t, c)
}

func newJobs(t *testing.T, c net.Conn) *jobs {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &jobs{t, c, bufio.NewReader(c)}
}

// answers sends a command, and expects an answer that begins with want. A job's body, of one line,
// is skipped.
func (j *jobs) answers(command, want string) string {
	j.Helper()
	if _, err := io.WriteString(j.conn, command+"\r\n"); err != nil {
		j.Fatal(err)
	}
	line, err := j.in.ReadString('\n')
	line = strings.TrimRight(line, "\r\n")
	if err != nil || !strings.HasPrefix(line, want) {
		j.Fatalf("%s is answered %q, %v, not %s", command, line, err, want)
	}
	if strings.HasPrefix(line, "FOUND ") || strings.HasPrefix(line, "RESERVED ") {
		if _, err := j.in.ReadString('\n'); err != nil {
			j.Fatal(err)
		}
	}
	return line
}

const jobsAddress = `clients of beanstalkd: (\S+)\n`

// A job is a message, whose id is the job's.
func TestServeBeanstalk(t *testing.T) {
	w, s := served(t, "mem:", "--beanstalk", "127.0.0.1:0", "--beanstalk-max-job", "10")
	j := dialJobs(t, s.stdout.await(t, jobsAddress)[1])
	j.answers("use mail", "USING mail")
	id := strings.Fields(j.answers("put 7 3600 60 5\r\nhello", "INSERTED "))[1]
	j.answers("put 7 0 60 11\r\nhello world", "JOB_TOO_BIG")
	run1(t, w, step{args: "get mail --id " + id, stdout: `.*\npriority  7\nttr  1m\n\nhello\n`})
	w.must(t, "cancel", "mail", "--id", id)
	j.answers("peek "+id, "NOT_FOUND")
	run1(t, w, step{args: "status", stdout: `.*\nclients of beanstalkd: 1 connection, 0 waiting for a job\n.*`})
	if _, err := io.WriteString(j.conn, "reserve\r\n"); err != nil {
		t.Fatal(err)
	}
	awaits(t, "the wait of the connection", func() error {
		if clients := object(t, w.must(t, "status", "--json"))["beanstalk"]; fmt.Sprint(clients) != "map[connections:1 waiting:1]" {
			return fmt.Errorf("the status tells of %v", clients)
		}
		return nil
	})
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	_, page, err := fetch(t, url+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"tarry_beanstalk_connections 1", "tarry_beanstalk_waiting 1", `tarry_beanstalk_commands_total{command="put"} 2`} {
		if !strings.Contains(string(page), line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if code := s.stop(t); code != exitOK {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
	w, _ = served(t, "mem:")
	if clients, told := object(t, w.must(t, "status", "--json"))["beanstalk"]; told {
		t.Errorf("without such clients the status tells of %v", clients)
	}
}

func TestBeanstalkThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens.json")
	newToken(t, tokens, "shop", "push", "*")
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("file")
	write("binlog.1")
	listening, err := net.Listen("unix", filepath.Join(dir, "used"))
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()
	serve := "serve --http 127.0.0.1:0 --store mem: "
	for _, s := range []step{
		{args: serve + "--beanstalk 0.0.0.0:0", stderr: `tarry: 0.0.0.0:0 \(\S+\) can be reached from other machines, and there are no tokens .*`},
		{args: serve + "--beanstalk 11300", stderr: `tarry: --beanstalk "11300" is not an address .*`},
		{args: serve + "--beanstalk unix:", stderr: `tarry: --beanstalk names no socket .*`},
		{args: serve + "--beanstalk-as shop", stderr: `tarry: --beanstalk-as is given, .*`},
		{args: serve + "--beanstalk 127.0.0.1:0 --beanstalk-as shop", stderr: `tarry: --beanstalk-as names a token, and there are no tokens .*`},
		{args: serve + "--beanstalk 127.0.0.1:0 --beanstalk-as other --tokens " + tokens, stderr: `tarry: --beanstalk-as: there is no valid token of the name "other" .*`},
		{args: serve + "--beanstalk 127.0.0.1:0 --beanstalk-max-job 2MiB", stderr: `tarry: --beanstalk-max-job 2097152 is more than --max-body .*`},
		{args: serve + "--beanstalk 127.0.0.1:0 --beanstalk-max-job 0", stderr: `tarry: the largest job may have 1 to .*`},
		{args: "serve --store amqp://127.0.0.1:1 --http 127.0.0.1:0 --beanstalk 127.0.0.1:0", stderr: `tarry: RabbitMQ .* \(use a disk store, .*`},
		{args: "serve --store http://127.0.0.1:1 --http 127.0.0.1:0 --beanstalk 127.0.0.1:0", stderr: `tarry: .*another server \(give --beanstalk to that server\)`},
		{args: serve + "--beanstalk unix:" + dir + "/used", code: exitFailed, stderr: `tarry: cannot listen on .*used: the socket is in use .*`},
		{args: serve + "--beanstalk unix:" + dir + "/file", code: exitFailed, stderr: `tarry: cannot listen on .*file: .*`},
		{args: "beanstalkd -l 0.0.0.0 -p 0", stderr: `tarry: 0.0.0.0:0 \(\S+\) can be reached from other machines, and there are no tokens .*`},
		{args: "beanstalkd -p x", stderr: `tarry: cannot listen on 127.0.0.1:x: .* \(-l takes an address such as 127.0.0.1, and -p a port such as 11300\)`},
		{args: "beanstalkd -b " + dir, stderr: `tarry: \S+ holds jobs of beanstalkd, .*`},
		{args: "beanstalkd -p 0 -u nobody.here", stderr: `tarry: -u: .*unknown user nobody.here .*`},
		{args: "beanstalkd -x", stderr: `tarry: unknown shorthand flag.*`},
		{args: "beanstalkd job", stderr: `tarry: too many arguments .*`},
	} {
		if s.code == exitOK {
			s.code = exitUsage
		}
		s.stderr += "\n"
		run1(t, world{}, s)
	}
}

// A socket that was left behind is replaced.
func TestBeanstalkOnASocketThatWasLeftBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	left, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	s := world{}.start(t, "beanstalkd", "-l", "unix:"+path)
	j := dialJobs(t, s.stdout.await(t, `listens on (\S+) for clients of beanstalkd\n`)[1])
	j.answers("list-tube-used", "USING default")
	if code := s.stop(t); code != exitOK {
		t.Errorf("exit code %d: %s", code, s.stderr)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is left behind")
	}
}

// Where others can connect it is by TLS alone; on loopback it is plain, beside HTTPS.
func TestBeanstalkWithTLS(t *testing.T) {
	_, cert, key := nettest.Certificate(t)
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	for address, secure := range map[string]bool{"127.0.0.1:0": false, "0.0.0.0:0": true} {
		s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--beanstalk", address, "--insecure", "--tls-cert", cert, "--tls-key", key)
		at := s.stdout.await(t, jobsAddress)[1]
		if !secure {
			dialJobs(t, at).answers("list-tube-used", "USING default")
			continue
		}
		c, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", at, &tls.Config{RootCAs: pool})
		if err != nil {
			t.Fatal(err)
		}
		newJobs(t, c).answers("list-tube-used", "USING default")
		plain := dialJobs(t, at)
		_, _ = io.WriteString(plain.conn, "list-tube-used\r\n")
		if line, _ := plain.in.ReadString('\n'); strings.HasPrefix(line, "USING") {
			t.Errorf("without TLS the answer is %q", line)
		}
	}
}

// A client proves a token, or has the rights of the one that the operator names.
func TestBeanstalkWithTokens(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	file := newToken(t, tokens, "worker", "work,read", "mail")
	newToken(t, tokens, "shop", "push", "mail")
	secret, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--beanstalk", "127.0.0.1:0", "--tokens", tokens, "--beanstalk-as", "shop")
	at := s.stdout.await(t, jobsAddress)[1]
	shop, worker := dialJobs(t, at), dialJobs(t, at)
	shop.answers("use mail", "USING mail")
	id := strings.Fields(shop.answers("put 0 0 60 1\r\nx", "INSERTED "))[1]
	shop.answers("peek "+id, "FORBIDDEN")
	worker.answers("auth tarry_no_secret", "UNAUTHORIZED")
	worker.answers("auth "+strings.TrimSpace(string(secret)), "AUTHORIZED")
	worker.answers("peek "+id, "FOUND "+id+" 1")
	worker.answers("use mail", "USING mail")
	worker.answers("put 0 0 60 1\r\nx", "FORBIDDEN")
}

// SIGUSR1 has puts refused, and nothing else.
func TestBeanstalkDrains(t *testing.T) {
	wishes := make(chan os.Signal)
	s := world{drains: wishes}.start(t, "beanstalkd", "-p", "0")
	j := dialJobs(t, s.stdout.await(t, `listens on (\S+) for clients of beanstalkd\n`)[1])
	j.answers("put 0 0 60 1\r\nx", "INSERTED ")
	wishes <- os.Interrupt
	s.stderr.await(t, "tarry: draining: ")
	j.answers("put 0 0 60 1\r\nx", "DRAINING")
	j.answers("reserve-with-timeout 0", "RESERVED ")
}

// A client that does not read is cut at the end, which is no failure.
func TestBeanstalkdEndsWithoutWhoDoesNotRead(t *testing.T) {
	s := world{}.start(t, "beanstalkd", "-p", "0")
	at := s.stdout.await(t, `listens on (\S+) for clients of beanstalkd\n`)[1]
	deaf, other := dialJobs(t, at), dialJobs(t, at)
	const size = 60_000
	id := strings.Fields(deaf.answers(fmt.Sprintf("put 0 0 60 %d\r\n%s", size, strings.Repeat("x", size)), "INSERTED "))[1]
	const most = 2000 // far more than the kernel's buffers take
	if _, err := io.WriteString(deaf.conn, strings.Repeat("peek "+id+"\r\n", most)); err != nil {
		t.Fatal(err)
	}
	before := ""
	awaits(t, "the answers to fill the buffers", func() error {
		other.answers("stats", "OK ")
		now := ""
		for line := ""; line != "\r\n"; {
			var err error
			if line, err = other.in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, "cmd-peek: ") {
				now = line
			}
		}
		defer func() { before = now }()
		if now == before && now != "cmd-peek: 0\n" {
			return nil
		}
		return fmt.Errorf("after %q, %q", before, now)
	})
	if before == fmt.Sprintf("cmd-peek: %d\n", most) {
		t.Fatal("the buffers take all answers")
	}
	if code := s.stop(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	s.stderr.await(t, "tarry: .*still under way.*\ntarry: stopped serving, and closed the store\n")
}

// The flags are those of beanstalkd, also several together and next to their values.
func TestBeanstalkdFlags(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a%20b?c#d")
	args := []string{"beanstalkd", "-VFf0", "-l127.0.0.1", "-p0", "-b", dir, "-z", "10", "-s", "4096"}
	id := ""
	for range 2 {
		s := world{}.start(t, args...)
		j := dialJobs(t, s.stdout.await(t, `listens on (\S+) for clients of beanstalkd\n`)[1])
		if id == "" {
			id = strings.Fields(j.answers("put 0 3600 60 10\r\n0123456789", "INSERTED "))[1]
		}
		j.answers("put 0 0 60 11\r\n0123456789x", "JOB_TOO_BIG")
		j.answers("peek "+id, "FOUND "+id+" 10")
		if out := s.stdout.String(); !strings.Contains(out, "data: "+dir+"\n") {
			t.Errorf("it prints\n%s", out)
		}
		s.stderr.await(t, "tarry: -s is ignored")
		if code := s.stop(t); code != exitOK {
			t.Errorf("exit code %d: %s", code, s.stderr)
		}
	}
	run1(t, world{}, step{args: "beanstalkd -v", stdout: `beanstalkd 1\.13, .*\n`})
}
