package cost

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/diskengine"
	_ "github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/tarryotel"
	"github.com/tarryhq/tarry/tarryprom"
	"github.com/tarryhq/tarry/trend"
)

// The variables that make this program a system to be measured.
const (
	envStore    = "TARRY_COST_STORE"
	envWith     = "TARRY_COST_WITH"
	envReceiver = "TARRY_COST_RECEIVER"
	envView     = "TARRY_COST_VIEW"   // the address of the server that it watches
	envServes   = "TARRY_COST_SERVES" // as tarry serve does
)

func TestMain(m *testing.M) {
	var (
		err   error
		floor []byte
	)
	if os.Getenv(envServes) != "" { // see docs/decisions/runtime.md
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
		floor = make([]byte, 16<<20)
	}
	switch {
	case os.Getenv(envStore) != "":
		err = run(os.Stdin, os.Stdout)
	case os.Getenv(envView) != "":
		err = watch(os.Getenv(envView), os.Stdin, os.Stdout)
	default:
		os.Exit(m.Run())
	}
	runtime.KeepAlive(floor)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// system is a store with a server on it, and with metrics, traces, trends or nothing.
type system struct {
	client  *tarry.Client
	worker  *tarry.WorkerConfig
	metrics *tarryprom.Metrics
	traces  *sdktrace.TracerProvider
	keys    int
}

// run serves until its input ends, and does what that says: "begin" and "end" are answered
// with the processors' time used so far, in nanoseconds; "work N" with a line when so many
// messages have been pushed and handled.
func run(in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, cfg, err := open(ctx, os.Getenv(envStore), os.Getenv(envWith), os.Getenv(envReceiver))
	if err != nil {
		return err
	}
	defer s.client.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.New(s.client, cfg).Serve(ctx, ln) }()
	fmt.Fprintln(out, ln.Addr())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		word, arg, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "begin":
			fmt.Fprintln(out, used())
		case "work":
			n, _ := strconv.Atoi(arg)
			if err := s.work(ctx, n); err != nil {
				return err
			}
			fmt.Fprintln(out)
		case "end":
			if s.traces != nil {
				_ = s.traces.ForceFlush(ctx) // what it cannot send is dropped
			}
			fmt.Fprintln(out, used())
		}
	}
	stop()
	return <-served
}

func used() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

func open(ctx context.Context, store, with, receiver string) (*system, *server.Config, error) {
	s := &system{worker: &tarry.WorkerConfig{Concurrency: clients}}
	cfg := new(tarry.Config)
	serving := &server.Config{ReadHeaderTimeout: time.Hour, IdleTimeout: time.Hour} // others have their turns meanwhile
	if with == "metrics" || with == "trends" {
		s.metrics = tarryprom.New(nil)
		cfg.Meter, serving.Metrics, serving.Answered = s.metrics.Meter(), s.metrics.Handler(), s.metrics.Answered
		if with == "trends" { // beside metrics, as in tarry serve
			serving.Trends = trend.New(nil)
			cfg.Meter = tarry.Meters(cfg.Meter, serving.Trends.Meter())
		}
	} else if part, ok := strings.CutPrefix(with, "traces-"); ok {
		percent, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return nil, nil, err
		}
		exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(receiver+"/v1/traces"))
		if err != nil {
			return nil, nil, err
		}
		s.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
			sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(percent/100))))
		t := tarryotel.New(&tarryotel.Config{TracerProvider: s.traces})
		cfg.PushMiddleware, s.worker.Middleware = []tarry.PushMiddleware{t.Push}, []tarry.Middleware{t.Handle}
	}
	c, err := tarry.Open(ctx, store, cfg)
	if err != nil {
		return nil, nil, err
	}
	s.client = c
	if s.metrics != nil {
		s.metrics.Watch(c)
	}
	return s, serving, nil
}

// work has n messages pushed by many callers and handled by a worker.
func (s *system) work(ctx context.Context, n int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := tarry.NewWorker(s.client, s.worker)
	var left atomic.Int64
	left.Store(int64(n))
	tarry.Handle(w, tarry.NewTopic[[]byte]("library"), func(context.Context, *tarry.Message[[]byte]) error {
		if left.Add(-1) == 0 {
			cancel()
		}
		return nil
	})
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	first := s.keys
	s.keys += n
	err := each(n, 1, func(from, _ int) error {
		_, err := s.client.Push(context.WithoutCancel(ctx), "library", make([]byte, bodySize), tarry.Key(strconv.Itoa(first+from)))
		return err
	})
	return errors.Join(err, <-ran)
}

// patience bounds a turn.
const patience = time.Minute
