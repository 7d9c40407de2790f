package intake

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/duration"
)

// Field sets what a named value beside a message's body says: delay is a duration such as
// 30m, due a time as in RFC 3339, key the message's key, cancel a key to cancel, content-type
// that of the body. Case does not count. Anything else is a header of the message. A value
// that is wrong has the message refused.
func (m *Message) Field(name, value string) {
	var err error
	d := &m.Draft
	switch strings.ToLower(name) {
	case "delay":
		if d.Due.In, err = duration.Parse(value); err != nil {
			err = errors.New("it is no duration such as 30m")
		}
	case "due":
		if d.Due.At, err = time.Parse(time.RFC3339Nano, value); err != nil {
			err = errors.New("it is no time such as 2030-01-31T12:00:00Z")
		}
	case "key":
		d.Key = value
	case "cancel":
		if m.Cancel = value; value == "" {
			err = errors.New("it is empty")
		}
	case "content-type":
		d.ContentType = value
	default:
		d.Headers = append(d.Headers, tarry.MessageHeader{Name: name, Value: value})
	}
	if err == nil && d.Due.In != 0 && !d.Due.At.IsZero() {
		err = errors.New("both delay and due are given")
	}
	if err != nil && m.Refused == nil {
		m.Refused = fmt.Errorf("%s: %w", strings.ToLower(name), err)
	}
}
