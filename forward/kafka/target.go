package kafka

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/semaphore"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
)

// Config is the destination of records.
type Config struct {
	Brokers []string  // host:port; at least one
	Client  []kgo.Opt // authentication and transport: kgo.SASL, kgo.DialTLSConfig, …

	// Topic is the topic of the records. Default: the name of the message's queue.
	Topic string

	// MaxBytes bounds a batch, and so a record. Default 1000012.
	MaxBytes int32
}

// Target produces messages to a topic. It is a forward.Target.
type Target struct {
	cfg         Config
	opts        *forward.Options
	link        *link.Link[*kgo.Client]
	lastConnect lastConnect
	turns       *semaphore.Weighted // a Send takes one turn, or all of them to be alone
}

const (
	maxSends    = 10_000 // records in the client at a time
	dialTimeout = 3 * time.Second
	// The pauses between attempts of the client. It notices an ended context only after one.
	minPause = 50 * time.Millisecond
	maxPause = 500 * time.Millisecond
)

// New returns a target without connecting. Options may be nil.
func New(cfg Config, o *forward.Options) (*Target, error) {
	o, err := link.Options(o, "Kafka")
	if err != nil {
		return nil, err
	}
	switch {
	case len(cfg.Brokers) == 0:
		return nil, link.Invalid("no Kafka broker is given")
	case cfg.Topic != "" && !validTopic(cfg.Topic):
		return nil, link.Invalid("the topic is invalid; it has 1 to 249 of A-Za-z0-9._-")
	case cfg.MaxBytes < 0:
		return nil, link.Invalid("max_bytes is negative")
	}
	t := &Target{cfg: cfg, opts: o, turns: semaphore.NewWeighted(maxSends)}
	t.link = link.New(o.Timeout, t.dial, (*kgo.Client).Close)
	return t, nil
}

// dial makes a client, which connects when it has something to send.
func (t *Target) dial(context.Context) (*kgo.Client, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(t.cfg.Brokers...),
		kgo.ClientID("tarry"),
		kgo.WithHooks(&t.lastConnect),
		kgo.DialTimeout(min(dialTimeout, t.opts.Timeout)),
		kgo.ProduceRequestTimeout(max(t.opts.Timeout, time.Second)),
		kgo.RetryBackoffFn(func(tries int) time.Duration { return min(minPause<<min(tries, 10), maxPause) }),
		kgo.ProducerLinger(0),
		kgo.UnknownTopicRetries(1),
		kgo.MetadataMinAge(minPause * 5),
		kgo.AllowIdempotentProduceCancellation(),
		kgo.MaxBufferedRecords(maxSends),
	}
	if t.cfg.MaxBytes > 0 {
		options = append(options, kgo.ProducerBatchMaxBytes(t.cfg.MaxBytes))
	}
	cl, err := kgo.NewClient(append(options, t.cfg.Client...)...)
	if err != nil {
		return nil, link.Fault(err, "check the options of the Kafka client")
	}
	return cl, nil
}

func (t *Target) brokers() string { return strings.Join(t.cfg.Brokers, ", ") }

// Send produces a record and waits until all replicas have it.
func (t *Target) Send(ctx context.Context, m *tarry.Message[[]byte]) error {
	topic := t.cfg.Topic
	if topic == "" {
		if topic = m.Queue; !validTopic(topic) {
			return tarry.Bury(link.Fault(fmt.Errorf("the queue's name is not a topic: 1 to 249 of A-Za-z0-9._-"), "give a topic in the target's URL"))
		}
	}
	return t.link.Send(ctx, func(ctx context.Context, cl *kgo.Client) error {
		err := t.produce(ctx, cl, 1, topic, m)
		if refusedForGood(err) {
			// The batch was refused, perhaps because of another record.
			err = t.produce(ctx, cl, maxSends, topic, m)
		}
		return t.fault(ctx, topic, err)
	})
}

// produce produces a record and waits for the result.
func (t *Target) produce(ctx context.Context, cl *kgo.Client, turns int64, topic string, m *tarry.Message[[]byte]) error {
	if err := t.turns.Acquire(ctx, turns); err != nil {
		return err
	}
	defer t.turns.Release(turns)
	for {
		done := make(chan error, 1)
		cl.Produce(ctx, t.record(topic, m), func(_ *kgo.Record, err error) { done <- err })
		err := <-done
		if ctx.Err() != nil || !abandoned(err) {
			return err
		}
	}
}

func (t *Target) record(topic string, m *tarry.Message[[]byte]) *kgo.Record {
	r := &kgo.Record{Topic: topic, Value: m.Body}
	if m.Key != "" {
		r.Key = []byte(m.Key)
	}
	for _, h := range forward.Metadata(m, t.opts) {
		if !link.IsContentType(h.Name) {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)})
		}
	}
	if ct := link.ContentType(m, t.opts); ct != "" {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "Content-Type", Value: []byte(ct)})
	}
	return r
}

// Close waits for Sends in progress and closes the connections.
func (t *Target) Close() error { return t.link.Close() }

// validTopic reports whether Kafka allows a topic of this name.
func validTopic(s string) bool {
	if s == "" || len(s) > 249 || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
