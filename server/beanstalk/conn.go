package beanstalk

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// conn is a connection. Its fields belong to its goroutine.
type conn struct {
	l    *listener
	s    *Server
	nc   net.Conn
	ctx  context.Context // of calls of the store
	open context.Context // ends when the connection is to end, after the command under way
	stop context.CancelFunc
	host string // of the client; what the store shows as the name of the worker

	in      input
	out     []byte    // answers not written yet
	sent    uint64    // bytes written
	writeBy time.Time // the deadline of writing
	cut     error     // why an answer could not be written whole: nothing may follow it

	use      *tube
	watch    []*tube
	producer bool
	worker   bool
	token    *access.Token // nil: none, or there are no tokens
	held     held
	puts     []tarry.Draft // gathered, not pushed yet
	leaser   *tarry.Leaser // of the watched tubes; nil: none was needed yet
	watcher  watcher
}

func newConn(l *listener, nc net.Conn) *conn {
	c := &conn{l: l, s: l.s, nc: nc, ctx: l.ctx, host: "unix"}
	c.open, c.stop = context.WithCancel(l.open)
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		c.host = a.IP.String()
	}
	c.in.init(l.ctx, &c.s.memory)
	c.held.s, c.held.ctx = c.s, l.ctx
	c.watcher.init(c)
	return c
}

// stopping reports whether the connection is to end. All of a listener stop at once: none takes
// a job that another gives back.
func (c *conn) stopping() bool { return c.l.open.Err() != nil || c.open.Err() != nil }

// run carries out commands until the connection ends.
func (c *conn) run() {
	defer c.l.ended(c)
	defer c.end()
	defer func() {
		if p := recover(); p != nil {
			c.s.cfg.Logger.Error("a command of a client of beanstalkd panicked", "from", c.host, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	c.use, _ = c.s.tubes.refer(defaultTube, using)
	first, _ := c.s.tubes.refer(defaultTube, watching)
	c.watch = []*tube{first}
	for !c.stopping() {
		line, got := c.in.next()
		switch {
		case got == part:
			if c.more(maxLine, time.Time{}) != nil {
				return
			}
		case got == tooLong:
			c.say("BAD_FORMAT")
		case fromBrowser(line):
			c.stop()
		default:
			c.do(line)
		}
		if len(c.out) > flushAt && c.flush() != nil {
			return
		}
	}
	c.push()
	_ = c.flush()
}

// do answers the command of a line.
func (c *conn) do(line []byte) {
	v, rest := parse(line)
	if v != put {
		c.push()
	}
	c.held.expire(time.Now())
	answer, err := c.carryOut(v, rest)
	if err != nil {
		answer = c.answerTo(err)
	}
	if answer != "" {
		c.say(answer)
	}
}

// carryOut carries out a command and returns its answer; "": it is written, or there is none.
func (c *conn) carryOut(v *verb, rest []byte) (string, error) {
	if (v == nil || !v.open) && !c.known() {
		return c.unauthorized(v, rest)
	}
	if v == nil {
		return "UNKNOWN_COMMAND", nil
	}
	a, ok := v.arguments(rest)
	if !ok {
		return "BAD_FORMAT", nil
	}
	c.s.counts.verbs[v.at].Add(1)
	return v.do(c, a)
}

// quit ends the connection.
func (c *conn) quit(args) (string, error) {
	c.stop()
	return "", nil
}

// more reads on, for need bytes in all, until a time; zero: without limit. Before it may wait,
// what was asked is carried out and answered.
func (c *conn) more(need int, by time.Time) error {
	c.push()
	if err := c.flush(); err != nil {
		return err
	}
	return c.read(need, by)
}

// errNoMemory says that there is no memory left for buffers, or for tubes.
var errNoMemory = errors.New("no memory for what clients send, read or watch")

// lingerFor is how long a connection may keep a big buffer without need.
const lingerFor = 100 * time.Millisecond

// read reads once into the input, which grows towards need bytes.
func (c *conn) read(need int, by time.Time) error {
	p := c.in.space(need)
	if p == nil {
		return errNoMemory
	}
	linger := !c.in.isSmall() && need <= smallInput
	switch {
	case linger:
		by = time.Now().Add(lingerFor)
	case c.token == nil && !c.known():
		by = time.Now().Add(c.s.limits.read)
	}
	if !by.IsZero() {
		c.deadline(by)
		defer c.deadline(time.Time{})
	}
	n, err := c.nc.Read(p)
	c.in.add(n)
	if n > 0 || linger && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// deadline sets that of reading; zero: none. A stopping connection keeps its own.
func (c *conn) deadline(t time.Time) {
	_ = c.nc.SetReadDeadline(t)
	if c.stopping() {
		_ = c.nc.SetReadDeadline(past)
	}
}

var past = time.Unix(1, 0)

// flushAt is how many bytes of answers are gathered before they are written.
const flushAt = 32 << 10

// say adds a line to the answers, behind those of the puts before.
func (c *conn) say(line string) {
	c.push()
	c.out = append(append(c.out, line...), "\r\n"...)
}

// sayNumber adds a line that ends in a number.
func (c *conn) sayNumber(words string, n uint64) {
	c.out = append(c.out, words...)
	c.out = strconv.AppendUint(c.out, n, 10)
	c.out = append(c.out, "\r\n"...)
}

// sayJob adds the answer that shows a job.
func (c *conn) sayJob(word string, id engine.ID, body []byte) {
	c.out = append(c.out, word...)
	c.out = strconv.AppendUint(c.out, uint64(id), 10)
	c.sayNumber(" ", uint64(len(body)))
	if len(body) > flushAt {
		if c.flush() == nil {
			_ = c.write(body)
		}
	} else {
		c.out = append(c.out, body...)
	}
	c.out = append(c.out, "\r\n"...)
}

// answerTo returns the answer for an error.
func (c *conn) answerTo(err error) string {
	switch {
	case errors.Is(err, errForbidden):
		c.s.counts.refused.Add(1)
		return "FORBIDDEN"
	case errors.Is(err, engine.ErrNotFound), errors.Is(err, engine.ErrLeased), errors.Is(err, engine.ErrLeaseLost), errors.Is(err, engine.ErrStale), errors.Is(err, engine.ErrExists):
		return "NOT_FOUND"
	case errors.Is(err, engine.ErrLimit), errors.Is(err, errNoMemory):
		return "OUT_OF_MEMORY"
	case errors.Is(err, engine.ErrTooLarge):
		return "JOB_TOO_BIG"
	}
	c.s.warn("a command failed", "from", c.host, "error", err)
	return "INTERNAL_ERROR"
}

// flush writes the answers.
func (c *conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	err := c.write(c.out)
	if c.out = c.out[:0]; cap(c.out) > smallInput {
		c.out = nil
	}
	return err
}

// write writes each 64 KiB within the time to write. Without memory for much that its client may
// be slow to read, the connection ends.
func (c *conn) write(b []byte) error {
	if n := len(b); n > smallInput {
		if !c.s.memory.hold(n) {
			c.stop()
			return c.open.Err()
		}
		defer c.s.memory.release(n)
	}
	for len(b) > 0 && c.cut == nil {
		c.setWriteDeadline()
		var n int
		n, c.cut = c.nc.Write(b[:min(len(b), 64<<10)])
		c.sent += uint64(n)
		b = b[n:]
	}
	if c.cut != nil {
		c.stop()
	}
	return c.cut
}

// setWriteDeadline sets the deadline, unless that was done lately: the runtime takes long to change
// one.
func (c *conn) setWriteDeadline() {
	within := c.s.limits.write
	if by := time.Now().Add(within); by.Sub(c.writeBy) > within/16 {
		c.writeBy = by
		_ = c.nc.SetWriteDeadline(by)
	}
}

// end gives up all that the connection has.
func (c *conn) end() {
	c.stop()
	c.in.drop()
	c.closeLeaser()
	c.held.giveBack(c.sent)
	if c.use != nil {
		c.s.tubes.leave(c.ctx, c.use, using)
	}
	for _, t := range c.watch {
		c.s.tubes.leave(c.ctx, t, watching)
	}
	if c.producer {
		c.s.counts.producers.Add(-1)
	}
	if c.worker {
		c.s.counts.workers.Add(-1)
	}
}
