package server

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// BenchmarkDecodeBatch reads a batch of 100 messages of 200 bytes; std is what
// encoding/json takes for the same, without our checks.
func BenchmarkDecodeBatch(b *testing.B) {
	one := `{"queue":"orders","key":"order-123456","delay":"30m","body":{"x":"` + strings.Repeat("a", 190) + `"},"priority":1024}`
	data := []byte(`{"messages":[` + one + strings.Repeat(","+one, 99) + `]}`)
	b.Run("input", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		in, bt := new(input), new(batch)
		for b.Loop() {
			in.parse(data)
			bt.msgs = bt.msgs[:0]
			if in.batch(bt); in.failed() != nil || len(bt.msgs) != 100 {
				b.Fatal(in.failed())
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
