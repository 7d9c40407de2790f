package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	_ "github.com/tarryhq/tarry/forward/kafka"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/internal/targettest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	message = targettest.Message
	send    = targettest.Send
)

// start starts a cluster of one broker, which has the topic orders.
func start(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(1, "orders")}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func url(c *kfake.Cluster) string { return "kafka://" + c.ListenAddrs()[0] }

// records are the first n records of a topic, which it has to have, and what comes soon
// behind them.
func records(t *testing.T, c *kfake.Cluster, topic string, n int) []*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var got []*kgo.Record
	for more := true; more; {
		patience := targettest.Patience
		if len(got) >= n {
			patience, more = 50*time.Millisecond, false
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		fetched := cl.PollFetches(ctx).Records()
		cancel()
		if len(got) < n && len(fetched) == 0 {
			t.Fatalf("only %d records of %d", len(got), n)
		}
		got = append(got, fetched...)
	}
	return got
}

func values(rs []*kgo.Record) (all []string) {
	for _, r := range rs {
		all = append(all, string(r.Value))
	}
	return all
}

func TestARecordHasTheBodyTheKeyAndTheMetadata(t *testing.T) {
	t.Parallel()
	c := start(t, kfake.SeedTopics(1, "due"))
	o := &forward.Options{Headers: []forward.Header{{Name: "Team", Value: "shop"}}}
	target := targettest.Open(t, url(c)+"/due", o)
	began := time.Now().Truncate(time.Millisecond)
	send(t, target, message(7, "\x00\xff binary", forward.Header{Name: "ä ö", Value: "\r\n"}, forward.Header{Name: "content-type", Value: "feigned"}))
	r := records(t, c, "due", 1)[0]
	var headers []string
	for _, h := range r.Headers {
		headers = append(headers, h.Key, string(h.Value))
	}
	want := []string{"Tarry-Id", "7", "Tarry-Queue", "orders", "Tarry-Key", "order-7", "Tarry-Due", "2026-05-04T03:02:01.020Z", "Tarry-Attempt", "2",
		"ä ö", "\r\n", "Team", "shop", "Content-Type", "text/plain"}
	if !slices.Equal(headers, want) {
		t.Errorf("got  %q\nwant %q", headers, want)
	}
	if string(r.Value) != "\x00\xff binary" || string(r.Key) != "order-7" || r.Timestamp.Before(began) {
		t.Errorf("the record is %q of %q at %s", r.Value, r.Key, r.Timestamp)
	}
	m := message(8, "x")
	m.Key = ""
	send(t, targettest.Open(t, url(c), nil), m)
	if r := records(t, c, "orders", 1)[0]; r.Key != nil {
		t.Errorf("without a key: %q", r.Key)
	}
}

func TestManySends(t *testing.T) {
	t.Parallel()
	c := start(t, kfake.SeedTopics(4, "wide"))
	target := targettest.Open(t, url(c)+"/wide", nil)
	targettest.SendMany(t, target, 32, func(id uint64) *tarry.Message[[]byte] { return message(id, strconv.FormatUint(id, 10)) })
	got := values(records(t, c, "wide", 640))
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != 640 || len(got) != 640 {
		t.Errorf("%d records, %d of them different", len(got), n)
	}
}

// What did not reach a broker in its time is not produced later.
func TestABrokerThatIsDownAtFirstAndLater(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), nettest.FreePort(t)
	run := func() *kfake.Cluster {
		return start(t, kfake.Ports(port), kfake.DataDir(dir), kfake.SyncWrites())
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	target := targettest.Open(t, "kafka://"+addr+"/orders", &forward.Options{Timeout: time.Second})
	targettest.Fails(t, target, message(1, "lost"), addr, "refused", "check that Kafka runs")
	c := run()
	targettest.Recovers(t, target, message(1, "one"))
	c.Close()
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() { targettest.Retried(t, target.Send(t.Context(), message(uint64(i+2), "lost"))) })
	}
	all.Wait()
	c = run()
	targettest.Recovers(t, target, message(9, "two"))
	if got := slices.Compact(values(records(t, c, "orders", 2))); !slices.Equal(got, []string{"one", "two"}) { // one whose answer is late is sent again
		t.Errorf("there are %q", got)
	}
}

// One that leaves while its record is under way takes the partition's other records with
// it, and these are produced all the same.
func TestOneThatLeavesHarmsNoOther(t *testing.T) {
	t.Parallel()
	c := start(t)
	target := targettest.Open(t, url(c)+"/orders", nil)
	send(t, target, message(1, "first"))

	hung, release := make(chan struct{}), make(chan struct{})
	var once sync.Once // what is sent again may come while the first still hangs
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		once.Do(func() { close(hung) })
		c.SleepControl(func() { <-release })
		return nil, errors.New("cut"), true
	})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- target.Send(ctx, message(2, "left")) }()
	<-hung
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			if err := target.Send(t.Context(), message(uint64(3+i), "stays")); err != nil {
				t.Error(err)
			}
		})
	}
	cancel()
	err := <-left
	targettest.Retried(t, err, "canceled", "may or may not have it")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	close(release)
	all.Wait()
	got := values(records(t, c, "orders", 11))
	if n := len(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s != "stays" })); n != 10 || slices.Contains(got, "left") {
		t.Errorf("there are %q", got)
	}
}

func TestATopicThatIsNotThere(t *testing.T) {
	t.Parallel()
	c := start(t)
	target := targettest.Open(t, url(c)+"/later", nil)
	targettest.Retried(t, target.Send(t.Context(), message(1, "one")), "UNKNOWN_TOPIC", "there is no topic later; create it")
	if err := c.CreateTopic("later", 1, nil); err != nil {
		t.Fatal(err)
	}
	targettest.Recovers(t, target, message(1, "one"))
	m := message(2, "two")
	m.Queue = "a/b"
	targettest.BuriedWith(t, targettest.Open(t, url(c), nil).Send(t.Context(), m), "not a topic", "give a topic")
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidTopicException})
	targettest.BuriedWith(t, target.Send(t.Context(), m), "INVALID_TOPIC", "choose a topic other than")
}

// A batch that is too large for the broker, and one that holds a record that is.
func TestWhatIsTooLargeIsBuriedAlone(t *testing.T) {
	t.Parallel()
	c := start(t)
	if err := c.CreateTopic("small", 1, map[string]string{"max.message.bytes": "2000"}); err != nil {
		t.Fatal(err)
	}
	target := targettest.Open(t, url(c)+"/small", nil)
	send(t, target, message(1, "first"))
	big := func() string { // not to be compressed
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, "%x", i*i*i*7919)
		}
		return b.String()
	}()
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if i%10 == 0 {
				targettest.BuriedWith(t, target.Send(t.Context(), message(uint64(2+i), big)), "MESSAGE_TOO_LARGE", "small", "max_bytes")
				return
			}
			if err := target.Send(t.Context(), message(uint64(2+i), big[:500])); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(records(t, c, "small", 37)); n != 37 {
		t.Errorf("%d records of 37", n)
	}
	local := targettest.Open(t, url(c)+"/orders?max_bytes=1KiB", nil)
	targettest.BuriedWith(t, local.Send(t.Context(), message(1, big)), "MESSAGE_TOO_LARGE")
	send(t, local, message(1, "x"))
}

func TestUsers(t *testing.T) {
	t.Parallel()
	c := start(t, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "plain", "geheim"), kfake.Superuser("SCRAM-SHA-256", "s256", "geheim"), kfake.Superuser("SCRAM-SHA-512", "s512", "geheim"),
		kfake.User("PLAIN", "other", "geheim", kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "orders", Operation: kmsg.ACLOperationDescribe, Allow: true}))
	addr, o := c.ListenAddrs()[0], &forward.Options{Timeout: 500 * time.Millisecond}
	for user, query := range map[string]string{"plain": "", "s256": "?sasl=scram-sha-256", "s512": "?sasl=scram-sha-512"} {
		send(t, targettest.Open(t, "kafka://"+user+":geheim@"+addr+"/orders"+query, nil), message(1, "one"))
		wrong := targettest.Open(t, "kafka://"+user+":geheimer@"+addr+"/orders"+query, o)
		targettest.Retried(t, wrong.Send(t.Context(), message(1, "one")), addr)
	}
	// A real broker says why.
	f := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SASLAuthenticate}, TopLevel: true, Count: -1, Err: kerr.SaslAuthenticationFailed})
	wrong := targettest.Open(t, "kafka://plain:geheimer@"+addr+"/orders", o)
	targettest.Fails(t, wrong, message(1, "one"), "SASL_AUTHENTICATION_FAILED", "check the user")
	f.Remove()
	denied := targettest.Open(t, "kafka://other:geheim@"+addr+"/orders", o)
	targettest.Fails(t, denied, message(1, "one"), "AUTHORIZATION_FAILED", "WRITE")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cfg, file, _ := nettest.Certificate(t)
	c := start(t, kfake.TLS(cfg))
	addr, o := c.ListenAddrs()[0], &forward.Options{Timeout: time.Second}
	send(t, targettest.Open(t, "kafka+tls://"+addr+"/orders?ca_file="+file, nil), message(1, "one"))
	targettest.Fails(t, targettest.Open(t, "kafka+tls://"+addr+"/orders", o), message(1, "one"), "certificate")
	targettest.Retried(t, targettest.Open(t, "kafka://"+addr+"/orders", o).Send(t.Context(), message(1, "one")), addr)
}

func TestClose(t *testing.T) {
	t.Parallel()
	c := start(t)
	target := targettest.Open(t, url(c), nil)
	send(t, target, message(1, "one"))
	for range 2 {
		if err := target.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := target.Send(t.Context(), message(2, "two")); !errors.Is(err, tarry.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
