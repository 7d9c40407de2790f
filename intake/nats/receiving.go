package nats

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/calls"
)

// receiving is one connection from which messages are taken, until it is hung up.
type receiving struct {
	s        *source
	nc       *nats.Conn
	js       jetstream.JetStream
	to       intake.Sink
	refusals chan refusal
	ctx      context.Context // ended by hangUp
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

// refusal is a message to set aside.
type refusal struct {
	msg jetstream.Msg
	why error
}

func newReceiving(s *source, nc *nats.Conn, js jetstream.JetStream, to intake.Sink) *receiving {
	r := &receiving{s: s, nc: nc, js: js, to: to, refusals: make(chan refusal, s.cfg.prefetch)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.work.Go(r.refuseAll)
	return r
}

// run hands over messages until ctx ends or there is an error.
func (r *receiving) run(ctx context.Context) error {
	_, c, err := r.s.look(ctx, r.js)
	if err != nil {
		return err
	}
	all, err := c.Messages(jetstream.PullMaxMessages(int(r.s.cfg.prefetch)), jetstream.PullHeartbeat(3*time.Second))
	if err != nil {
		return err
	}
	defer all.Stop()
	defer context.AfterFunc(ctx, all.Stop)()
	r.to.Report(nil)
	for {
		msg, err := all.Next()
		if err != nil {
			return err
		}
		r.to.Take(r.message(msg))
	}
}

// refuseAll sets refused messages aside, then acks them. While that fails they stay unacked.
func (r *receiving) refuseAll() {
	for {
		select {
		case f := <-r.refusals:
			r.refuse(&f)
		case <-r.ctx.Done():
			return
		}
	}
}

func (r *receiving) refuse(f *refusal) {
	for pause := (calls.Pause{Least: 100 * time.Millisecond, Most: 10 * time.Second}); ; {
		err := r.setAside(f)
		if err == nil {
			_ = f.msg.Ack() // else it comes again
			r.to.Report(nil)
			return
		}
		if r.nc.IsClosed() {
			return
		}
		r.to.Report(&intake.Trouble{Code: "refused_stream", Err: err, Hint: "refused messages wait for a stream with the subject " + r.s.cfg.stream + refusedSuffix + "; make one, or let the intake with declare=true"})
		if !pause.Wait(r.ctx) {
			return
		}
	}
}

// setAside publishes a message to the subject for refused ones, with the reason.
func (r *receiving) setAside(f *refusal) error {
	ctx, cancel := context.WithTimeout(r.ctx, r.s.opts.Timeout)
	defer cancel()
	msg := &nats.Msg{Subject: r.s.cfg.stream + refusedSuffix, Data: f.msg.Data(), Header: make(nats.Header)}
	for name, values := range f.msg.Headers() {
		if len(name) < 5 || name[:5] != "Nats-" { // JetStream would obey it
			msg.Header[name] = values
		}
	}
	msg.Header.Set("Refused", engine.Clip(f.why.Error()))
	_, err := r.js.PublishMsg(ctx, msg)
	return err
}

// hangUp closes the connection, once what was settled is acked.
func (r *receiving) hangUp() {
	r.cancel()
	r.work.Wait()
	_ = r.nc.FlushTimeout(r.s.opts.Timeout) // else those come again
	r.nc.Close()
}
