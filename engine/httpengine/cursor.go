package httpengine

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry/engine"
)

// cursor reads an answer once, from front to end, without reflection: answers with
// thousands of messages are common. The first thing that is wrong ends the reading.
// Fields that are unknown are skipped, since answers may grow.
type cursor struct {
	rd  bytes.Buffer
	dec jsontext.Decoder
	err error
}

var cursors = sync.Pool{New: func() any { return new(cursor) }}

// read lets f read an answer.
func read(data []byte, f func(c *cursor)) error {
	c := cursors.Get().(*cursor)
	defer cursors.Put(c)
	c.err = nil
	c.rd = *bytes.NewBuffer(data)
	c.dec.Reset(&c.rd, jsontext.AllowDuplicateNames(true))
	f(c)
	c.rd = bytes.Buffer{}
	return c.err
}

func (c *cursor) fail(err error) {
	if c.err == nil && err != nil {
		c.err = problem("%v", err)
	}
}

// object calls field for each field with its name; field reads the value.
func (c *cursor) object(field func(name string)) {
	if !c.enter('{') {
		return
	}
	for c.err == nil && c.dec.PeekKind() != '}' {
		v, err := c.dec.ReadValue()
		if err != nil {
			c.fail(err)
			return
		}
		field(name(v))
	}
	c.leave()
}

// array calls element for each element, which reads it.
func (c *cursor) array(element func()) {
	if !c.enter('[') {
		return
	}
	for c.err == nil && c.dec.PeekKind() != ']' {
		element()
	}
	c.leave()
}

func (c *cursor) enter(kind jsontext.Kind) bool {
	if c.err != nil {
		return false
	}
	t, err := c.dec.ReadToken()
	if err == nil && t.Kind() != kind {
		err = problem("%v where %v was expected", t.Kind(), kind)
	}
	c.fail(err)
	return c.err == nil
}

func (c *cursor) leave() {
	if c.err == nil {
		_, err := c.dec.ReadToken()
		c.fail(err)
	}
}

func (c *cursor) skip() {
	if c.err == nil {
		c.fail(c.dec.SkipValue())
	}
}

// names are the names of fields and the words that come often, so that they need no
// memory.
var names = func() map[string]string {
	m := make(map[string]string)
	for _, s := range []string{
		"outcome", "id", "queue", "key", "due", "state", "created", "replaced", "kept", "expires", "attempt",
		"max_attempts", "priority", "ttr", "backoff", "expire_after", "headers", "content_type", "body_base64",
		"body", "last_error", "died", "lease", "lease_expires", "ok", "error", "until", "results", "failed",
		"messages", "now", "next_due", "queues", "more", "expired", "next", "code", "message", "hint",
		"application/json", "text/plain", "application/octet-stream",
		"scheduled", "ready", "leased", "dead", "gone",
	} {
		m[s] = s
	}
	return m
}()

// name returns what a JSON string says.
func name(v jsontext.Value) string {
	if bytes.IndexByte(v, '\\') < 0 {
		v = v[1 : len(v)-1]
		if s, ok := names[string(v)]; ok {
			return s
		}
		return string(v)
	}
	b, _ := jsontext.AppendUnquote(nil, []byte(v)) // it has been read as a string
	return string(b)
}

// str reads a string, or null as an empty one; valid until the next read.
func (c *cursor) str() jsontext.Value {
	if c.err != nil {
		return nil
	}
	v, err := c.dec.ReadValue()
	switch {
	case err != nil:
	case v.Kind() == 'n':
		return nil
	case v.Kind() != '"':
		err = problem("%v where a string was expected", v.Kind())
	default:
		return v
	}
	c.fail(err)
	return nil
}

func (c *cursor) text() string {
	if v := c.str(); v != nil {
		return name(v)
	}
	return ""
}

func (c *cursor) time() time.Time {
	s := c.text()
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	c.fail(err)
	return t.UTC()
}

func (c *cursor) duration() time.Duration {
	d, err := time.ParseDuration(c.text())
	c.fail(err)
	return d
}

func (c *cursor) id() engine.ID {
	id, err := engine.ParseID(c.text())
	c.fail(err)
	return id
}

func (c *cursor) state() engine.State {
	s, err := engine.ParseState(c.text())
	c.fail(err)
	return s
}

func (c *cursor) number() int64 {
	if c.err != nil {
		return 0
	}
	v, err := c.dec.ReadValue()
	c.fail(err)
	n, err := strconv.ParseInt(string(v), 10, 64)
	c.fail(err)
	return n
}

func (c *cursor) flag() bool {
	if c.err != nil {
		return false
	}
	t, err := c.dec.ReadToken()
	c.fail(err)
	return err == nil && t.Kind() == 't'
}

func (c *cursor) raw() []byte {
	if c.err != nil {
		return nil
	}
	v, err := c.dec.ReadValue()
	c.fail(err)
	return bytes.Clone(v)
}

func (c *cursor) base64() []byte {
	v := c.str()
	if len(v) < 2 {
		return nil
	}
	b, err := base64.StdEncoding.AppendDecode(nil, v[1:len(v)-1])
	c.fail(err)
	return b
}

// wrong reads an error of the API.
func (c *cursor) wrong() *wireError {
	w := new(wireError)
	c.object(func(name string) {
		switch name {
		case "code":
			w.Code = c.text()
		case "message":
			w.Message = c.text()
		case "hint":
			w.Hint = c.text()
		default:
			c.skip()
		}
	})
	return w
}
