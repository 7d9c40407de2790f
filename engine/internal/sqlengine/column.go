package sqlengine

import (
	"encoding/json"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// How columns store values, in every database.

// OrNever returns the instant in a column in which NULL means never.
func OrNever(ms *int64) int64 {
	if ms == nil {
		return never
	}
	return *ms
}

// Numbers converts ids for columns.
func Numbers(ids []engine.ID) []int64 {
	n := make([]int64, len(ids))
	for i, id := range ids {
		n[i] = int64(id)
	}
	return n
}

// EncodeSettings encodes settings as JSON; nil: none is set.
func EncodeSettings(s *engine.Settings) []byte {
	if s.Unset() {
		return nil
	}
	text, _ := json.Marshal(s) // checked numbers always succeed
	return text
}

// DecodeSettings decodes settings.
func DecodeSettings(text []byte) (s engine.Settings, err error) {
	if text != nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// MetaOf encodes a content without its body; nil: only the body is set.
func MetaOf(c *engine.Content) []byte {
	if c.ContentType == "" && len(c.Headers) == 0 {
		return nil
	}
	return codec.AppendContent(nil, &engine.Content{ContentType: c.ContentType, Headers: c.Headers})
}

// Scanner is a row of an answer.
type Scanner interface{ Scan(dest ...any) error }

// ScanRow reads the columns of a message: id, queue, key, kind, ends, due, expires, created,
// attempt, nonce, worker, failures, ending, policy, meta, size and body. The row keeps meta
// and failures.
func ScanRow(r Scanner) (*Row, error) {
	m := new(Row)
	var c struct { // one allocation
		id, attempt                      int64
		expires                          *int64
		ending                           *engine.Ending
		key, nonce, worker, policy, meta []byte
	}
	err := r.Scan(&c.id, &m.Queue, &c.key, &m.Kind, &m.Ends, &m.Due, &c.expires, &m.Created, &c.attempt,
		&c.nonce, &c.worker, &m.Failures, &c.ending, &c.policy, &c.meta, &m.Size, &m.Content.Body)
	if err != nil {
		return nil, err
	}
	m.ID, m.Key, m.Attempt, m.Worker, m.Expires = engine.ID(c.id), string(c.key), uint32(c.attempt), string(c.worker), OrNever(c.expires)
	if c.ending != nil {
		m.Ending = *c.ending
	}
	if len(c.nonce) == len(codec.Nonce{}) {
		m.Nonce = new(codec.Nonce(c.nonce))
	}
	p := codec.Reader{B: c.policy}
	m.Policy = p.Policy()
	if c.meta == nil || p.Err != nil {
		return m, p.Err
	}
	p = codec.Reader{B: c.meta}
	content := p.Content()
	m.Content.ContentType, m.Content.Headers = content.ContentType, content.Headers
	return m, p.Err
}

// ScanMemory reads the columns of a memory: queue, key, id, due, ending, ended and forgotten.
func ScanMemory(r Scanner) (m Memory, err error) {
	var id int64
	err = r.Scan(&m.Queue, &m.Key, &id, &m.Due, &m.Ending, &m.Ended, &m.Forgotten)
	m.ID = engine.ID(id)
	return m, err
}

// ScanQueue reads the columns num, name, paused, settings and revision of a queue.
func ScanQueue(r Scanner) (q Queue, err error) {
	var settings []byte
	if err = r.Scan(&q.Num, &q.Name, &q.Paused, &settings, &q.Revision); err == nil {
		q.Settings, err = DecodeSettings(settings)
	}
	return q, err
}

// ScanStock returns a scan that adds stocks from the queue and the counts in order.
func ScanStock(to map[int64]Stock) func(Scanner) error {
	return func(r Scanner) error {
		var queue int64
		var s Stock
		err := r.Scan(&queue, &s.Waiting, &s.Ready, &s.Leased, &s.Dead, &s.Finished, &s.History)
		to[queue] = s
		return err
	}
}

// ScanDue returns a scan that adds a queue's counts of CountDue from the minute and the count.
func ScanDue(queue int64, to *[]Tally) func(Scanner) error {
	return func(r Scanner) error {
		t := Tally{Queue: queue, Count: CountDue}
		err := r.Scan(&t.Minute, &t.N)
		*to = append(*to, t)
		return err
	}
}

// ScanBody returns a scan that fills in the bodies of rows from id and body.
func ScanBody(rows []*Row) func(Scanner) error {
	byID := make(map[int64]*Row, len(rows))
	for _, m := range rows {
		byID[int64(m.ID)] = m
		m.Content.Body = nil
	}
	return func(r Scanner) error {
		var id int64
		var body []byte
		err := r.Scan(&id, &body)
		if m := byID[id]; m != nil {
			m.Content.Body = body
		}
		return err
	}
}

// IDs returns the ids of rows for a column.
func IDs(rows []*Row) []int64 {
	ids := make([]int64, len(rows))
	for i, m := range rows {
		ids[i] = int64(m.ID)
	}
	return ids
}
