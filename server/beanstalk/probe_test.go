package beanstalk_test

import (
	"flag"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/probe.golden; with TARRY_TEST_BEANSTALK=real from beanstalkd's answers")

const golden = "testdata/probe.golden"

// TestProbe asks what the protocol's description leaves open. The golden file has the answers of
// beanstalkd 1.13, and after them, where ours are others, these.
func TestProbe(t *testing.T) {
	if kind() == "real" && old(t) {
		t.Skip("the answers are those of beanstalkd 1.13: build it, and set TARRY_TEST_BEANSTALKD to its path")
	}
	onEach(t, func(t *testing.T, kind string) { runProbe(t, kind) })
}

func runProbe(t *testing.T, kind string) {
	p := &probe{t: t, kind: kind, at: start(t, kind, settings{}), ids: make(map[string]string)}
	p.lines()
	p.bodies()
	p.halfClosed()
	p.order()
	p.kicks()
	p.margin()
	p.tubes()
	p.held()
	p.stats()
	p.check()
}

type probe struct {
	t    testing.TB
	kind string
	at   *site
	ids  map[string]string
	said []answer
}

type answer struct{ what, said string }

func (p *probe) dial() *conn { return p.at.dial(p.t) }

func (p *probe) show(what string, answers ...string) {
	for i, a := range answers {
		answers[i] = p.plain(a)
	}
	p.said = append(p.said, answer{what, strings.Join(answers, " ; ")})
}

var (
	ids   = regexp.MustCompile(`(INSERTED |RESERVED |FOUND |\nid: )(\d+)`)
	sized = regexp.MustCompile(`^OK \d+ \| `)
)

// plain replaces ids by their number in order of appearance, and makes an answer one line.
func (p *probe) plain(a string) string {
	a = ids.ReplaceAllStringFunc(a, func(s string) string {
		m := ids.FindStringSubmatch(s)
		if p.ids[m[2]] == "" {
			p.ids[m[2]] = fmt.Sprint("#", len(p.ids)+1)
		}
		return m[1] + p.ids[m[2]]
	})
	return strings.TrimSpace(strings.ReplaceAll(sized.ReplaceAllString(a, ""), "\n", " "))
}

// only returns some of what stats say. A time left that is a little less than what it was at first is that.
func only(stats string, full int, keys ...string) string {
	m := yaml(stats)
	if len(m) == 0 {
		return stats
	}
	var out []string
	for _, k := range keys {
		v := m[k]
		if n, err := strconv.Atoi(v); err == nil && strings.HasSuffix(k, "time-left") && n > 0 && n <= full && n >= full-6 {
			v = fmt.Sprint("almost ", full)
		}
		out = append(out, k+"="+v)
	}
	return strings.Join(out, " ")
}

func (p *probe) lines() {
	c := p.dial()
	for _, line := range []string{
		"", " ", "put", "put ", "delete", "delete ", "delete 0", "delete 00", "delete  7", "delete +7", "delete -7", "delete 7 ",
		"peek-readyX", "reserveX", "reserve-with-timeout", "reserve-with-timeout 0abc", "reserve-with-timeout  0",
		"reserve-with-timeout -1", "reserve-with-timeout 2147483648", "statsX", "stats-tube", "stats-tube -a", "stats-tube nope",
		"list-tubesX", "list-tube-usedX", "list-tubes-watchedX", "use", "use ", "use a b", "use -a", "use a*", "watch a b",
		"kick", "kick abc", "kick 0", "kick -1", "kick 1abc", "kick 18446744073709551616", "kick-job 0",
		"pause-tube", "pause-tube default", "pause-tube default 0 1", "pause-tubedefault 0", "pause-tube  default  0",
		"pause-tube -a 0", "pause-tube nope 1", "pause-tube default 4294967296",
		"touch 1 ", "bury 1", "bury 1 2 3", "release 1 2", "release 1 2 3 4", "PUT 0 0 0 0", "ignore nope", "ignore default",
	} {
		p.show(strconv.Quote(line), c.cmd("%s", line))
	}
	for _, line := range []string{"quitX", "use a\nuse b", "use a\x00b", strings.Repeat("x", 222)} {
		p.show(strconv.Quote(line), p.dial().cmd("%s", line))
	}
	p.show("a lone CR", p.after("a\rb\r\n"))
	c = p.dial()
	c.send(strings.Repeat("x", 223) + "\r\n")
	p.show("a line of 225 bytes", c.read(quiet), c.cmd("list-tube-used"))
}

// quiet is how long it takes to be sure that no answer comes.
const quiet = 300 * time.Millisecond

// after returns the answer to what is sent, if one comes.
func (p *probe) after(text string) string {
	c := p.dial()
	c.send(text)
	return c.read(quiet)
}

func (p *probe) bodies() {
	c := p.dial()
	c.send("put 0 0 0 1\r\nabc\r\n")
	p.show("a body too long", c.read(patience), c.read(patience))
	c = p.dial()
	c.send("put 0 0 0 3\r\nabcde")
	p.show("no CRLF after a body", c.read(patience), c.cmd("list-tube-used"))
	c = p.dial()
	p.show("put with something after it", c.cmd("put 0 0 0 1 x"), c.cmd("list-tube-used"))
	p.show("the same, too big, without its body", p.after("put 0 0 0 99999999 x\r\n"))
	for _, n := range []int{65536, 65535} {
		c = p.dial()
		p.show(fmt.Sprint(n, " bytes"), c.cmd("put 0 0 0 %d\r\n%s", n, strings.Repeat("a", n)))
	}
	id := p.dial().readyID()
	p.show("delete", c.cmd("delete %s", id))
	const most = 1<<32 - 1
	id = c.put(most, most, most, "x")
	p.show("put of maxima", only(c.cmd("stats-job %s", id), most, "pri", "delay", "ttr", "time-left", "state"), c.cmd("delete %s", id))
	p.show("what is counted", only(c.cmd("stats"), 0, "cmd-delete", "cmd-put", "cmd-kick", "cmd-reserve", "cmd-reserve-with-timeout"))
}

// readyID returns the id of the job that peek-ready shows.
func (c *conn) readyID() string {
	c.t.Helper()
	words := strings.Fields(c.cmd("peek-ready"))
	if len(words) < 2 || words[0] != "FOUND" {
		c.t.Fatalf("peek-ready: %q", words)
	}
	return words[1]
}

func (p *probe) halfClosed() {
	for _, more := range []string{"", "use abc\r\n"} {
		c, other := p.dial(), p.dial()
		c.send("reserve\r\n" + more)
		for end := time.Now().Add(patience); yaml(other.cmd("stats-tube default"))["current-waiting"] != "1"; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				p.t.Fatal("nobody waits")
			}
		}
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			p.t.Fatal(err)
		}
		p.show("half-closed in reserve, behind it "+strconv.Quote(more), c.read(patience), c.read(patience), c.read(patience))
		other.quit()
	}
}

// in returns a connection that uses and watches one tube.
func (p *probe) in(tube string) *conn {
	c := p.dial()
	for _, verb := range []string{"use", "watch"} {
		c.cmd("%s %s", verb, tube)
	}
	c.cmd("ignore default")
	return c
}

// until asks until a job is in a state.
func (c *conn) until(id, state string) {
	c.t.Helper()
	for end := time.Now().Add(patience); yaml(c.cmd("stats-job %s", id))["state"] != state; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("job %s does not become %s", id, state)
		}
	}
}

func (p *probe) order() {
	c := p.in("o")
	a, b := c.put(5, 1, 60, "delayed"), c.put(5, 0, 60, "ready")
	c.until(a, "ready")
	p.show("one delayed by 1 s, then a ready one; later", c.cmd("reserve-with-timeout 0"), c.cmd("reserve-with-timeout 0"),
		c.cmd("delete %s", a), c.cmd("delete %s", b))
	a, b = c.put(5, 0, 60, "A"), c.put(5, 0, 60, "B")
	c.cmd("reserve-with-timeout 0")
	p.show("A released with 0, B behind it", c.cmd("release %s 5 0", a), c.cmd("reserve-with-timeout 0"))
	p.show("A released with 1 s and less priority", c.cmd("release %s 6 1", a), c.cmd("reserve-with-timeout 0"))
	c.until(a, "ready")
	p.show("then", c.cmd("reserve-with-timeout 0"))
	c.quit()
	c = p.in("o")
	c.until(a, "ready")
	p.show("A after a disconnect", only(c.cmd("stats-job %s", a), 0, "state", "pri", "reserves", "timeouts", "releases", "delay", "time-left"))
	c.cmd("reserve-job %s", a)
	p.show("bury", c.cmd("bury %s 9", a), only(c.cmd("stats-job %s", a), 0, "state", "pri", "buries", "delay"), c.cmd("peek-buried"))
	p.show("release, touch, bury of a buried one", c.cmd("release %s 1 0", a), c.cmd("touch %s", a), c.cmd("bury %s 1", a))
	p.show("kick", c.cmd("kick 5"), only(c.cmd("stats-job %s", a), 0, "state", "pri", "kicks"))
	p.show("its reserves", only(c.cmd("stats-job %s", a), 0, "reserves"))
	p.show("delete", c.cmd("delete %s", a), c.cmd("delete %s", b))
}

func (p *probe) kicks() {
	c := p.in("o")
	a, b := c.put(1, 50, 60, "d50"), c.put(1, 40, 60, "d40")
	p.show("kick 1 of two delayed ones", c.cmd("kick 1"), c.cmd("peek-ready"),
		only(c.cmd("stats-job %s", b), 0, "delay", "state", "kicks", "time-left"))
	p.show("reserve-job of a delayed one", c.cmd("reserve-job %s", a), only(c.cmd("stats-job %s", a), 60, "state", "delay", "time-left"))
	c.quit()
	c = p.in("o")
	c.until(a, "ready")
	p.show("it, after a disconnect", only(c.cmd("stats-job %s", a), 0, "state", "delay", "reserves"), c.cmd("delete %s", a), c.cmd("delete %s", b))
}

func (p *probe) margin() {
	c := p.dial()
	a := c.put(0, 0, 1, "short")
	c.cmd("reserve")
	p.show("reserve-with-timeout 0 in the margin", c.cmd("reserve-with-timeout 0"))
	b := c.put(0, 0, 60, "other")
	p.show("the same with one ready", c.cmd("reserve-with-timeout 0"), c.cmd("delete %s", b))
	c.until(a, "ready")
	p.show("touch, release, bury after the ttr", c.cmd("touch %s", a), c.cmd("release %s 0 0", a), c.cmd("bury %s 0", a),
		only(c.cmd("stats-job %s", a), 0, "state", "timeouts", "reserves"), c.cmd("delete %s", a))
	a, b = c.put(0, 0, 1, "short"), c.put(0, 0, 60, "paused")
	c.cmd("reserve")
	c.cmd("pause-tube default 9")
	began := time.Now()
	p.show("in the margin, one ready in a paused tube", c.cmd("reserve-with-timeout 9"), since(began))
	pauses := []string{"pause", "pause-time-left", "cmd-pause-tube"}
	p.show("reserve-job in a paused tube", c.cmd("reserve-job %s", b), only(c.cmd("stats-tube default"), 9, pauses...))
	p.show("pause-tube 0", c.cmd("pause-tube default 0"), only(c.cmd("stats-tube default"), 0, pauses...))
	p.show("delete", c.cmd("delete %s", a), c.cmd("delete %s", b))
	a = c.put(0, 0, 3, "three")
	began = time.Now()
	c.cmd("reserve")
	p.show("the margin comes while waiting", c.cmd("reserve-with-timeout 60"), since(began))
	p.show("touch then", c.cmd("touch %s", a), only(c.cmd("stats-job %s", a), 3, "time-left"), c.cmd("delete %s", a))
	c.quit()
}

// since says a time in whole seconds, as what begins on time on a busy machine may end later.
func since(began time.Time) string {
	return fmt.Sprintf("%d s", int((time.Since(began) + slack).Seconds()))
}

func (p *probe) tubes() {
	c := p.dial()
	listed := func() string { return fmt.Sprint(strings.Contains(c.cmd("list-tubes"), "- gone\n")) }
	c.cmd("use gone")
	p.show("a tube that is used", listed(), c.cmd("pause-tube gone 100"))
	c.cmd("use default")
	p.show("not used any more", listed(), c.cmd("stats-tube gone"))
	c.cmd("use gone")
	p.show("used again", only(c.cmd("stats-tube gone"), 0, "pause", "cmd-pause-tube", "total-jobs"))
	for _, name := range []string{"w1", "w2", "w1"} {
		p.show("watch "+name, c.cmd("watch %s", name))
	}
	p.show("watched", c.cmd("list-tubes-watched"))
	p.show("without the first", c.cmd("ignore default"), c.cmd("list-tubes-watched"))
	p.show("without another", c.cmd("ignore w1"), c.cmd("ignore w2"), c.cmd("list-tubes"))
	c.quit()
	c = p.dial()
	var all []string
	for i, name := range []string{"m1", "m2", "m3"} {
		c.cmd("use %s", name)
		all = append(all, c.put([]uint32{7, 3, 5}[i], 0, 60, name))
		c.cmd("watch %s", name)
	}
	p.show("three tubes, priorities 7, 3, 5", c.cmd("reserve-with-timeout 0"), c.cmd("reserve-with-timeout 0"), c.cmd("reserve-with-timeout 0"))
	for _, id := range all {
		p.show("delete", c.cmd("delete %s", id))
	}
	c.quit()
}

func (p *probe) held() {
	a, b := p.dial(), p.dial()
	id := a.put(0, 0, 60, "held")
	b.cmd("reserve")
	for _, command := range []string{"peek", "delete", "kick-job", "reserve-job", "touch"} {
		p.show(command+" of what another holds", a.cmd("%s %s", command, id))
	}
	p.show("peek-ready then", a.cmd("peek-ready"), b.cmd("delete %s", id))
}

// changing are lines of stats that are different in each run or depend on how often the probe had to ask.
var changing = regexp.MustCompile(`(pid|rusage-utime|rusage-stime|uptime|id|hostname|os|platform|cmd-stats-job|cmd-stats-tube|total-connections): \S.*`)

func (p *probe) stats() {
	c := p.dial()
	for end := time.Now().Add(patience); yaml(c.cmd("stats-tube default"))["current-using"] != "16" && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // a connection that the probe has closed is open yet
	}
	for _, line := range strings.Split(strings.TrimSpace(c.cmd("stats")), "\n")[1:] {
		if p.kind == "real" && strings.HasPrefix(line, "version: ") {
			line = `version: "1.13"`
		}
		p.show("stats", changing.ReplaceAllString(line, "$1: …"))
	}
	id := c.put(2000, 60, 9, "abc")
	for _, command := range []string{"stats-job " + id, "stats-tube default"} {
		verb, _, _ := strings.Cut(command, " ")
		for _, line := range strings.Split(strings.TrimSpace(c.cmd("%s", command)), "\n")[1:] {
			line = regexp.MustCompile(`time-left: 5[4-9]`).ReplaceAllString(line, "time-left: almost 60")
			line = regexp.MustCompile(`age: [0-5]$`).ReplaceAllString(line, "age: a little")
			p.show(verb, strings.ReplaceAll(line, "id: "+id, "id: …"))
		}
	}
}

// check compares what was said with the golden file.
func (p *probe) check() {
	p.t.Helper()
	if *update {
		var text strings.Builder
		for _, a := range p.said {
			fmt.Fprintf(&text, "%s\t%s\n", a.what, a.said)
		}
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		p.t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(want) != len(p.said) {
		p.t.Fatalf("%d answers, not %d", len(p.said), len(want))
	}
	for i, a := range p.said {
		columns := append(strings.Split(want[i], "\t"), "", "")
		right := columns[1]
		if columns[2] != "" && p.kind != "real" {
			right = columns[2]
		}
		if a.what != columns[0] || a.said != right {
			p.t.Errorf("%s: %q, want %q", a.what, a.said, right)
		}
	}
}
