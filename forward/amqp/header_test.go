package amqp

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/internal/rabbit"
	"github.com/tarryhq/tarry/internal/targettest"
)

// FuzzHeaders sees that whatever headers a message has can be published, and that their
// size is never thought smaller than it is.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{"Trace", "", "a b", "ä", "CC", "BCC", "x\r\ny", "Content-Type", "\xff"} {
		f.Add(s, "v", s, "w")
		f.Add("Trace", s, "Trace", "w")
	}
	o, err := (*forward.Options)(nil).Complete()
	if err != nil {
		f.Fatal(err)
	}
	target := &Target{opts: o}
	f.Fuzz(func(t *testing.T, name, value, name2, value2 string) {
		table := target.headers(targettest.Message(1, "x", forward.Header{Name: name, Value: value}, forward.Header{Name: name2, Value: value2}))
		if err := table.Validate(); err != nil {
			t.Error(err)
		}
		least := 4
		for k, v := range table {
			if len(k) > rabbit.MaxShort || k == "CC" || k == "BCC" {
				t.Errorf("there is %q", k)
			}
			least += 1 + len(k) + 1 + 4
			if s, ok := v.(string); ok {
				least += len(s)
			}
		}
		if n := rabbit.Bytes(&amqp.Publishing{Headers: table}); n < least {
			t.Errorf("%d bytes are thought %d", least, n)
		}
		if table[forward.HeaderID] != "1" {
			t.Errorf("the id is %v", table[forward.HeaderID])
		}
	})
}
