package wire

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tarryhq/tarry/engine"
)

// flood is a request of about 4 MiB that is one array, or one nested value, and little else.
func flood(before, item, after string) string {
	return before + item + strings.Repeat(","+item, 4<<20/(len(item)+1)) + after
}

func nested(before string, depth int, after string) string {
	return before + strings.Repeat("[", depth) + strings.Repeat("]", depth) + after
}

// No array of a request makes much of few bytes: what is read is bounded by the limits
// that the API tells, and by a small multiple of the text.
func TestArraysCostBoundedMemory(t *testing.T) {
	lease, batch, message := reads(Leasing), reads(NewBatch), reads(PushedMessage)
	for name, c := range map[string]struct {
		text string
		read func(r *Reader)
	}{
		"empty rooms":       {flood(`{"queues":["q"],"wait":"1s","room":[`, `{}`, `]}`), lease},
		"rooms":             {flood(`{"queues":["q"],"wait":"1s","room":[`, `{"queue":"a","max":0}`, `]}`), lease},
		"queues":            {flood(`{"wait":"1s","queues":[`, `"a"`, `]}`), lease},
		"numbers as queues": {flood(`{"wait":"1s","queues":[`, `1`, `]}`), lease},
		"messages":          {flood(`{"messages":[`, `{}`, `]}`), batch},
		"no messages":       {flood(`{"messages":[`, `1`, `]}`), batch},
		"refs":              {flood(`{"refs":[`, `{}`, `]}`), reads(Cancelling)},
		"settlements":       {flood(`{"settlements":[`, `{}`, `]}`), reads(Settling)},
		"ids":               {flood(`{"ids":[`, `"1"`, `]}`), reads(Redriving)},
		"groups":            {flood(`{"groups":[`, `"a"`, `]}`), reads(Dropping)},
		"backoff":           {flood(`{"backoff":[`, `"1s"`, `]}`), message},
		"header pairs":      {flood(`{"headers":[`, `["",""]`, `]}`), message},
		"header pair":       {flood(`{"headers":[[`, `""`, `]]}`), message},
		"header values":     {flood(`{"headers":{"a":[`, `""`, `]}}`), message},
		"unknown":           {flood(`{"unknown":[`, `0`, `]}`), message},
		"body":              {flood(`{"body":[`, `0`, `]}`), message},
	} {
		var before, after runtime.MemStats
		r := new(Reader)
		r.Reset([]byte(c.text))
		runtime.ReadMemStats(&before)
		c.read(r)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(len(c.text))*2+8<<20 {
			t.Errorf("%s: %d bytes took %d to read: %v", name, len(c.text), got, r.Err())
		}
	}
}

// Nor do names in a query.
func TestManyNamesCostLittle(t *testing.T) {
	raw := "queues=" + strings.Repeat(",", 30<<10)
	for name, parse := range map[string]func(){
		"live":   func() { _, _ = LiveQuery.ParseQuery(raw) },
		"trends": func() { _, _ = TrendsQuery.ParseQuery(raw) },
	} {
		if n := testing.AllocsPerRun(1, parse); n > 50 {
			t.Errorf("%s: a query of %d bytes took %v allocations", name, len(raw), n)
		}
	}
}

// Nor does a nested value, on the stack or elsewhere, while the request is at work.
func TestNestedValuesCostBoundedMemory(t *testing.T) {
	for name, text := range map[string]string{
		"body":     nested(`{"body":`, 9_998, `}`),
		"unknown":  nested(`{"unknown":`, 9_998, `}`),
		"key":      nested(`{"key":`, 9_998, `}`),
		"too deep": nested(`{"body":`, 100_000, `}`),
	} {
		const many = 50
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var read, done sync.WaitGroup
		read.Add(many)
		end := make(chan struct{})
		for range many {
			done.Go(func() {
				r := new(Reader)
				r.Reset([]byte(text))
				PushedMessage.Read(r, new(engine.Message))
				read.Done()
				<-end
				runtime.KeepAlive(r)
			})
		}
		read.Wait()
		grown := func(now, then uint64) int64 { return (int64(now) - int64(then)) / many }
		runtime.ReadMemStats(&after)
		stack := grown(after.StackInuse, before.StackInuse)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if heap := grown(after.HeapAlloc, before.HeapAlloc); stack > 64<<10 || heap > int64(len(text))+64<<10 {
			t.Errorf("%s: a request of %d bytes holds %d of stack and %d of heap", name, len(text), stack, heap)
		}
		close(end)
		done.Wait()
	}
}

// A body that is nested deep is kept byte for byte.
func TestNestedBodiesAreKept(t *testing.T) {
	for _, depth := range []int{1, maxNesting, maxNesting + 1, 9_990} {
		want := "[\"]\\\"[\", " + nested(`{"a":`, depth, " }") + " ]"
		var r Reader
		r.Reset([]byte(`{ "key" : "k" , "body" : ` + want + ` , "priority": 7}`))
		var m engine.Message
		if PushedMessage.Read(&r, &m); r.Err() != nil || string(m.Body) != want || *m.Priority != 7 {
			t.Errorf("%d deep: %v, %.100s", depth, r.Err(), m.Body)
		}
	}
}
