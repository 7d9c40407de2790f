package server_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/server"
)

// While a push over TLS waits for the engine, nothing turns.
func TestPushOverTLSRests(t *testing.T) {
	secure, certFile, _ := nettest.Certificate(t)
	c := tarry.New(&stalling{memengine.New(nil), 300 * time.Millisecond, 100}, nil)
	defer c.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- newServer(t, c, &server.Config{TLS: secure}).Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(t, certFile, nil)}}
	push := func() {
		resp, err := client.Post("https://"+l.Addr().String()+"/v1/queues/q/messages", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	push() // and shake hands
	before := cpu()
	for range 4 {
		push()
	}
	if took := time.Duration(cpu() - before); took > 600*time.Millisecond {
		t.Errorf("4 pushes that wait 300 ms took %v of the processor", took)
	}
	client.CloseIdleConnections()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
