package nats_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/internal/targettest"
)

// To the clients of NATS, a header Status is the server's word, and a message that has it
// and no body none of the stream's.
func TestAMessageCannotPassForTheServersWord(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	stream := s.stream(s.jetStream(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders"}})
	target := targettest.Open(t, s.url(""), nil)
	if err := target.Send(t.Context(), message(1, "", forward.Header{Name: "Status", Value: "404"}, forward.Header{Name: "Description", Value: "No Messages"})); err != nil {
		t.Fatal(err)
	}
	if err := target.Send(t.Context(), message(2, "two")); err != nil {
		t.Fatal(err)
	}
	consumer, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := consumer.Fetch(2, jetstream.FetchMaxWait(targettest.Patience))
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for m := range batch.Messages() {
		got++
		if m.Headers().Get("Status") != "" {
			t.Errorf("came with %v", m.Headers())
		}
	}
	if got != 2 || batch.Error() != nil {
		t.Errorf("%d messages of 2 came, %v", got, batch.Error())
	}
}
