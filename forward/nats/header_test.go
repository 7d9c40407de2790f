package nats

import (
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/internal/targettest"
)

// FuzzHeader sees that whatever headers a message has can be sent, and none is a command.
func FuzzHeader(f *testing.F) {
	for _, s := range []string{"Trace", "", "a b", "a:b", "ä", "nats-rollup", "Nats-Msg-Id", "x\r\nNats-Rollup", "Content-Type", "\x7f"} {
		f.Add(s, "v")
		f.Add("Trace", s)
	}
	o, err := (*forward.Options)(nil).Complete()
	if err != nil {
		f.Fatal(err)
	}
	t := &Target{opts: o}
	plain := t.header(targettest.Message(1, "x"))
	f.Fuzz(func(tt *testing.T, name, value string) {
		h := t.header(targettest.Message(1, "x", forward.Header{Name: name, Value: value}))
		msg := &nats.Msg{Subject: "s", Header: h}
		if msg.Size() <= len("s") {
			tt.Fatalf("%q: the client refuses it", name)
		}
		for k := range h {
			if _, is := plain[k]; is {
				continue
			}
			if k != name || strings.HasPrefix(strings.ToLower(k), "nats-") {
				tt.Errorf("there is %q", k)
			}
			if len(http.Header(h)[k]) != 1 {
				tt.Errorf("%q has %q", k, h[k])
			}
		}
		if len(h[nats.MsgIdHdr]) != 1 || h.Get(nats.MsgIdHdr) != plain.Get(nats.MsgIdHdr) {
			tt.Errorf("the message id is %q", h[nats.MsgIdHdr])
		}
	})
}
