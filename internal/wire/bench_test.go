package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// BenchmarkDecodeBatch reads a batch of 100 messages of 200 bytes; std is what
// encoding/json takes for the same, without our checks.
func BenchmarkDecodeBatch(b *testing.B) {
	one := `{"queue":"orders","key":"order-123456","delay":"30m","body":{"x":"` + strings.Repeat("a", 190) + `"},"priority":1024}`
	data := []byte(`{"messages":[` + one + strings.Repeat(","+one, 99) + `]}`)
	b.Run("reader", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		var r Reader
		var batch Batch
		for b.Loop() {
			r.Reset(data)
			batch.All = batch.All[:0]
			if NewBatch.Read(&r, &batch); r.Err() != nil || len(batch.All) != 100 {
				b.Fatal(r.Err())
			}
		}
	})
	b.Run("std", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			var req struct {
				Messages []struct {
					Queue, Key, Delay string
					Body              json.RawMessage
					Priority          uint32
				}
			}
			d := json.NewDecoder(bytes.NewReader(data))
			d.DisallowUnknownFields()
			if err := d.Decode(&req); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLeased writes and reads an answer of 100 leased messages of 200 bytes.
func BenchmarkLeased(b *testing.B) {
	at := time.UnixMilli(1_900_000_000_123).UTC()
	m := engine.Lease{Token: strings.Repeat("t", 60), Info: engine.Info{
		ID: 123456, Queue: "orders", Key: "order-123456", State: engine.Leased, Due: at, Created: at, Attempt: 1, Deadline: at,
		Content: engine.Content{Body: []byte(`"` + strings.Repeat("a", 198) + `"`), ContentType: "application/json"},
		Policy:  engine.Policy{Priority: 1024, MaxAttempts: 20, TTR: time.Minute},
	}}
	l := Leased{Now: at, Messages: make([]engine.Lease, 100)}
	for i := range l.Messages {
		l.Messages[i] = m
	}
	text := AppendLeased(nil, &l, Exactly)
	b.Run("append", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			text = AppendLeased(text[:0], &l, Exactly)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := LeaseAnswer.Answer(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
