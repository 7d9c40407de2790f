package mysqlengine

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

// Bytes come back unchanged, whatever they mean in a statement, and whatever the other messages
// of the call have.
func TestStatementsKeepBytes(t *testing.T) {
	t.Parallel()
	var every []byte
	for b := range 256 {
		every = append(every, byte(b))
	}
	bodies := [][]byte{
		nil, {}, []byte("'"), []byte("''"), []byte(`\`), []byte(`\'`), []byte(`'\`), []byte(`"?"`), []byte("? ? -- # /* ? */ ;"), []byte("\x00\n\r\x1a"),
		{0xe2, '\''}, {0xff, 0xfe, '\'', 0x80}, {0xbf, '\\', '\''}, every, bytes.ReplaceAll(every, []byte(`\`), nil), bytes.Repeat([]byte("'"), 9000),
	}
	for _, several := range []bool{true, false} {
		for _, mode := range []string{"", "NO_BACKSLASH_ESCAPES,ANSI_QUOTES"} {
			t.Run(fmt.Sprintf("several=%t mode=%s", several, mode), func(t *testing.T) {
				t.Parallel()
				db := connect(t, mysqltest.Shared(t), several)
				db.SetMaxOpenConns(1)
				_, err := db.ExecContext(t.Context(), "SET sql_mode = CONCAT(@@sql_mode, ?)", ","+mode)
				ok(t, err)
				prefix := newPrefix()
				e := openOn(t, db, prefix)
				t.Cleanup(func() { dropTables(t, db, prefix) })
				var all []engine.Message
				for i, body := range bodies {
					m := engine.Message{Queue: "q", Key: fmt.Sprintf("%d '\\%s", i, strings.ToValidUTF8(string(body[:min(len(body), 300)]), "")), Content: engine.Content{Body: body}, Due: engine.When{In: time.Hour}}
					switch i % 4 {
					case 1:
						m.ContentType = string(body[:min(len(body), 100)])
					case 2:
						m.Priority, m.ExpireAfter = new(uint32(i)), time.Hour
					case 3:
						m.MaxAttempts = uint32(i)
					}
					all = append(all, m)
				}
				for _, msgs := range [][]engine.Message{all[:1], all} { // to a queue that is new, and one that is known
					for i := range msgs {
						msgs[i].OnConflict = engine.Keep
					}
					pushed, err := e.Push(t.Context(), msgs)
					ok(t, err)
					for i, m := range msgs {
						ok(t, pushed[i].Err)
						got, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: m.Key})
						ok(t, err)
						if !bytes.Equal(got.Body, m.Body) || got.ContentType != m.ContentType || got.Key != m.Key || !got.Due.Equal(pushed[i].Due) {
							t.Errorf("%q came back as %q, of %q as %q", m.Body, got.Body, m.ContentType, got.ContentType)
						}
						if m.Priority != nil && got.Priority != *m.Priority || m.Priority == nil && got.Priority != engine.DefaultPriority ||
							m.MaxAttempts != 0 && got.MaxAttempts != m.MaxAttempts || got.ExpireAfter != m.ExpireAfter {
							t.Errorf("%+v came back as %+v", m.Terms, got.Policy)
						}
					}
				}
			})
		}
	}
}

// MySQL warns of syntax that later versions lack.
func TestStatementsCauseNoWarnings(t *testing.T) {
	t.Parallel()
	db := connect(t, mysqltest.Shared(t), true)
	prefix := newPrefix()
	t.Cleanup(func() { dropTables(t, db, prefix) })
	e := openOn(t, db, prefix)
	ok(t, e.store.in(t.Context(), "test", func(tx *tx) error {
		ctx := t.Context()
		row := &sqlengine.Row{ID: 1, Queue: 1, Key: "k", Expires: math.MaxInt64}
		memory := sqlengine.Memory{Name: sqlengine.Name{Queue: 1, Key: "k"}}
		for what, write := range map[string]func(){
			"insert":   func() { tx.Insert(ctx, []*sqlengine.Row{{ID: 2, Queue: 1, Expires: math.MaxInt64}}) },
			"move":     func() { tx.Move(ctx, []*sqlengine.Row{row}) },
			"rank":     func() { tx.Rank(ctx, []*sqlengine.Row{row}) },
			"replace":  func() { tx.Replace(ctx, []*sqlengine.Row{row}) },
			"remember": func() { tx.Remember(ctx, []sqlengine.Memory{memory}) },
			"fold":     func() { tx.fold(ctx, []int64{1}, map[count]int64{{1, 0, 0}: 1}) },
		} {
			write()
			tx.read(ctx, newStatement("SHOW WARNINGS"), func(r sqlengine.Scanner) error {
				var level, number, text string
				err := r.Scan(&level, &number, &text)
				t.Errorf("%s: %s %s: %s", what, level, number, text)
				return err
			})
			if err := tx.send(ctx); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
		return nil
	}))
}
