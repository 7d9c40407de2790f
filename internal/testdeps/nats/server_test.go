package nats_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tarryhq/tarry/internal/targettest"
)

// natsServer is a NATS server with JetStream, whose streams last over restarts.
type natsServer struct {
	t      *testing.T
	opts   *server.Options
	server *server.Server
}

// start starts a server, which change may have otherwise.
func start(t *testing.T, change func(*server.Options)) *natsServer {
	t.Helper()
	s := &natsServer{t: t, opts: &server.Options{
		Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
	}}
	if change != nil {
		change(s.opts)
	}
	s.run()
	t.Cleanup(s.stop)
	return s
}

func (s *natsServer) run() {
	s.t.Helper()
	opts := *s.opts
	var err error
	if s.server, err = server.NewServer(&opts); err != nil {
		s.t.Fatal(err)
	}
	s.server.Start()
	if !s.server.ReadyForConnections(targettest.Patience) {
		s.t.Fatal("the server does not become ready")
	}
	s.opts.Port = opts.Port // and there it comes back
}

func (s *natsServer) stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// addr is where the server listens, with a user if one is given.
func (s *natsServer) url(user string) string { return "nats://" + user + s.server.Addr().String() }

// jetStream is a client of the server's streams, which the test's end closes.
func (s *natsServer) jetStream(options ...nats.Option) jetstream.JetStream {
	s.t.Helper()
	nc, err := nats.Connect(s.url(""), append(options, nats.Timeout(targettest.Patience))...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(targettest.Patience))
	if err != nil {
		s.t.Fatal(err)
	}
	return js
}

// stream makes a stream.
func (s *natsServer) stream(js jetstream.JetStream, cfg jetstream.StreamConfig) jetstream.Stream {
	s.t.Helper()
	cfg.Duplicates = time.Minute
	stream, err := js.CreateOrUpdateStream(s.t.Context(), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return stream
}

// count is how many messages a stream has.
func count(t *testing.T, stream jetstream.Stream) uint64 {
	t.Helper()
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Msgs
}
