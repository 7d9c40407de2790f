package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward/internal/link"
)

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
