package beanstalk

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// conn is a connection. Its fields belong to its goroutine, but for those of wait.go.
type conn struct {
	l    *listener
	s    *Server
	nc   net.Conn
	ctx  context.Context
	host string // of the client; what the store shows as the name of the worker

	in      input
	out     []byte    // answers not written yet
	sent    uint64    // bytes written
	writeBy time.Time // the deadline of writing

	use      *tube
	watch    []*tube
	producer bool
	worker   bool
	token    *access.Token // nil: none, or there are no tokens
	limited  bool          // it must soon authenticate
	held     held
	puts     *puts         // gathered, not pushed yet; nil: none
	leaser   *tarry.Leaser // of the watched tubes; nil: none was needed yet

	ahead    ahead
	stopping atomic.Bool
}

func newConn(l *listener, nc net.Conn) *conn {
	c := &conn{l: l, s: l.s, nc: nc, ctx: l.ctx, host: "unix"}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		c.host = a.IP.String()
	}
	c.in.memory = &c.s.memory
	c.in.buf = c.in.small[:]
	c.held.s, c.held.ctx = c.s, l.ctx
	c.ahead.init(c.readAhead)
	return c
}

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
	for !c.stopping.Load() {
		if c.ahead.started { // the input is not ours yet
			if c.more(maxLine) != nil {
				return
			}
			continue
		}
		line, got := c.in.next()
		switch got {
		case part:
			c.limitIdle()
			if c.more(maxLine) != nil {
				return
			}
		case tooLong:
			c.say("BAD_FORMAT")
		case whole:
			if fromBrowser(line) {
				c.stop()
			} else {
				c.do(line)
			}
		}
		if len(c.out) > flushAt && c.flush() != nil {
			return
		}
	}
	c.push()
	_ = c.flush()
}

// do carries out the command of a line.
func (c *conn) do(line []byte) {
	v, rest := parse(line)
	if v != put {
		c.push()
	}
	c.held.expire(time.Now())
	if c.s.cfg.Guard != nil && (v == nil || !v.open) && !c.known() {
		c.unauthorized(v, rest)
		return
	}
	if v == nil {
		c.say("UNKNOWN_COMMAND")
		return
	}
	a, ok := v.arguments(rest)
	if !ok {
		c.say("BAD_FORMAT")
		return
	}
	c.s.counts.verbs[v.at].Add(1)
	v.do(c, a)
}

// more reads on, for need bytes in all. Before it may wait, what was asked is carried out and
// answered.
func (c *conn) more(need int) error {
	c.push()
	if err := c.flush(); err != nil {
		return err
	}
	return c.read(need)
}

// errNoMemory says that MaxBuffered is reached.
var errNoMemory = errors.New("no memory for the buffers of connections")

// lingerFor is how long a connection may keep a big buffer without need.
const lingerFor = 100 * time.Millisecond

// read reads once into the input, which grows towards need bytes. While a goroutine reads ahead
// it waits for that one.
func (c *conn) read(need int) error {
	if c.ahead.started {
		return c.ahead.join()
	}
	p := c.in.space(need)
	if p == nil {
		return errNoMemory
	}
	linger := !c.in.isSmall() && need <= smallInput
	if linger {
		c.deadline(time.Now().Add(lingerFor))
	}
	n, err := c.nc.Read(p)
	c.in.add(n)
	if linger {
		c.deadline(time.Time{})
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && !c.stopping.Load() {
			return nil
		}
	}
	if n > 0 {
		return nil
	}
	return err
}

// deadline sets that of reading; zero: none. A stopping connection keeps its own.
func (c *conn) deadline(t time.Time) {
	_ = c.nc.SetReadDeadline(t)
	if c.stopping.Load() {
		_ = c.nc.SetReadDeadline(past)
	}
}

var past = time.Unix(1, 0)

// stop ends the connection after the command under way.
func (c *conn) stop() {
	c.stopping.Store(true)
	_ = c.nc.SetReadDeadline(past)
	c.ahead.end(nil)
}

// flushAt is how many bytes of answers are gathered before they are written.
const flushAt = 32 << 10

// say adds a line to the answers, behind those of the puts before.
func (c *conn) say(words ...string) {
	c.push()
	for _, w := range words {
		c.out = append(c.out, w...)
	}
	c.out = append(c.out, "\r\n"...)
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
	c.out = append(c.out, ' ')
	c.sayNumber("", uint64(len(body)))
	if len(body) > flushAt {
		if c.flush() == nil {
			_ = c.write(body)
		}
	} else {
		c.out = append(c.out, body...)
	}
	c.out = append(c.out, "\r\n"...)
}

// sayYAML adds the answer of a list or of statistics.
func (c *conn) sayYAML(text []byte) {
	c.sayNumber("OK ", uint64(len(text)))
	c.out = append(append(c.out, text...), "\r\n"...)
}

// answer adds the answer of a command: a line, or that of its error.
func (c *conn) answer(line string, err error) {
	if err != nil {
		c.fail(err)
		return
	}
	c.say(line)
}

// fail adds the answer for an error.
func (c *conn) fail(err error) {
	switch {
	case errors.Is(err, errForbidden):
		c.s.counts.refused.Add(1)
		c.say("FORBIDDEN")
	case errors.Is(err, engine.ErrNotFound), errors.Is(err, engine.ErrLeased), errors.Is(err, engine.ErrLeaseLost), errors.Is(err, engine.ErrStale), errors.Is(err, engine.ErrExists):
		c.say("NOT_FOUND")
	case errors.Is(err, engine.ErrLimit):
		c.say("OUT_OF_MEMORY")
	case errors.Is(err, engine.ErrTooLarge):
		c.say("JOB_TOO_BIG")
	default:
		c.say("INTERNAL_ERROR")
		c.s.warn("a command failed", "from", c.host, "error", err)
	}
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
			return errNoMemory
		}
		defer c.s.memory.release(n)
	}
	for len(b) > 0 {
		c.setWriteDeadline()
		n, err := c.nc.Write(b[:min(len(b), 64<<10)])
		c.sent += uint64(n)
		if err != nil {
			c.stop()
			return err
		}
		b = b[n:]
	}
	return nil
}

// setWriteDeadline sets the deadline, unless that was done lately: the runtime takes long to change
// one.
func (c *conn) setWriteDeadline() {
	within := c.s.cfg.WriteTimeout
	if by := time.Now().Add(within); by.Sub(c.writeBy) > within/16 {
		c.writeBy = by
		_ = c.nc.SetWriteDeadline(by)
	}
}

// end closes the connection and makes what it held ready.
func (c *conn) end() {
	if c.ahead.started {
		c.wake()
	}
	c.in.lent = c.in.lent || c.ctx.Err() != nil
	c.in.drop()
	if c.ahead.cancel != nil {
		c.ahead.cancel()
	}
	if c.leaser != nil {
		c.leaser.Close()
	}
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
