package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"golang.org/x/sync/semaphore"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/storeurl"
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
	const known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return s != "" && len(s) <= 249 && s != "." && s != ".." && strings.Trim(s, known) == ""
}

// abandoned reports whether the client gave up a record because another Send of its partition
// had ended.
func abandoned(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// refusedForGood reports whether a broker will never take the batch.
func refusedForGood(err error) bool {
	for _, e := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.InvalidRecord, kerr.InvalidTimestamp} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// fault converts the error of a Send.
func (t *Target) fault(ctx context.Context, topic string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
		if last := t.lastConnect.failure(); last != nil {
			err = fmt.Errorf("%w; before: %w", err, last)
		}
	}
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case refusedForGood(err):
		return tarry.Bury(link.Fault(err, "make it smaller, or raise max.message.bytes of the topic "+topic+" and max_bytes of the URL"))
	case is(kerr.InvalidTopicException):
		return tarry.Bury(link.Fault(err, "choose a topic other than "+topic))
	case is(kerr.UnknownTopicOrPartition), is(kerr.UnknownTopicID):
		return link.Fault(err, "there is no topic "+topic+"; create it")
	case is(kerr.TopicAuthorizationFailed), is(kerr.ClusterAuthorizationFailed):
		return link.Fault(err, "the user needs WRITE on the topic "+topic+", and before Kafka 3.0 IDEMPOTENT_WRITE on the cluster")
	case is(kerr.SaslAuthenticationFailed), is(kerr.UnsupportedSaslMechanism), is(kerr.IllegalSaslState):
		return link.Fault(err, "check the user, the password and sasl of the URL")
	case ctx.Err() != nil:
		return link.Fault(err, "check that Kafka runs at "+t.brokers()+"; "+link.Unknown)
	}
	return link.Fault(err, "Kafka returned this error")
}

// lastConnect stores the error of the last attempt to connect, since a Send that times out was
// waiting for a connection. It is a kgo.HookBrokerConnect.
type lastConnect struct {
	mu  sync.Mutex
	err error
}

// OnBrokerConnect stores the result of an attempt.
func (s *lastConnect) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *lastConnect) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func init() { link.Register(parse, New, "kafka", "kafka+tls") }

// parse parses a URL.
func parse(u *url.URL, o *forward.Options) (*Config, error) {
	r := storeurl.New(u)
	cfg := &Config{Topic: strings.Trim(u.Path, "/")}
	if m := mechanism(r, u); m != nil {
		cfg.Client = append(cfg.Client, kgo.SASL(m))
	}
	if u.Scheme == "kafka+tls" {
		cfg.Client = append(cfg.Client, kgo.DialTLSConfig(r.TLSOver(o.TLS)))
	}
	var n int64
	if r.Bytes("max_bytes", &n) {
		if n < 1<<10 || n > math.MaxInt32 {
			r.Fail("max_bytes is 1KiB to 2147483647")
		}
		cfg.MaxBytes = int32(min(n, math.MaxInt32))
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		cfg.Brokers = append(cfg.Brokers, storeurl.Address(host, "9092"))
	}
	if u.Opaque != "" || u.Fragment != "" || u.Host == "" {
		r.Fail("an example is kafka://127.0.0.1:9092/orders")
	}
	return cfg, r.Done()
}

// mechanism returns how the client authenticates; nil: without a user.
func mechanism(r *storeurl.Reader, u *url.URL) sasl.Mechanism {
	user, name, password := u.User.Username(), "plain", ""
	given := r.Text("sasl", &name)
	withPassword := r.Password("password_file", &password)
	if user == "" {
		if given || withPassword {
			r.Fail("name the user, as in kafka://USER@host:9092/orders")
		}
		return nil
	}
	switch name {
	case "plain":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case "scram-sha-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "scram-sha-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	r.Fail("sasl is plain, scram-sha-256 or scram-sha-512")
	return nil
}
