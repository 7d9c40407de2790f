package access

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/internal/notify"
)

// Audit writes a line of JSON for each change: the time, the change, the token, the address
// and the result. A line that cannot be written stops no change, since the change is already
// made. The line goes to the Logger and is counted; once writing succeeds again, a line says
// how many are missing. An Audit may be used by many goroutines. Close it before its writer.
type Audit struct {
	// Logger gets the lines that could not be written, and why: the first hundred, then one a
	// second. Default: slog.Default().
	Logger *slog.Logger
	// Lost, if not nil, is called for each line that could not be written.
	Lost func()

	out     io.Writer
	handler slog.Handler // writes into line
	told    *notify.Lines

	mu      sync.Mutex
	line    bytes.Buffer
	torn    bool        // the last write did not end its line
	missing int         // lines lost since the last one that was written
	timer   *time.Timer // runs while lines are missing
	trouble atomic.Pointer[error]

	refusals refusals
	closed   bool
}

// NewAudit returns an Audit that writes to w. Set its fields before use.
func NewAudit(w io.Writer) *Audit {
	a := &Audit{out: w, told: notify.NewLines(100, time.Second), refusals: newRefusals()}
	a.timer = time.AfterFunc(retryAfter, a.retry)
	a.timer.Stop()
	a.handler = slog.NewJSONHandler(&a.line, &slog.HandlerOptions{ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
		if len(groups) == 0 && (attr.Key == slog.LevelKey || attr.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return attr
	}})
	return a
}

// Note writes a line of names and values, as slog takes them.
func (a *Audit) Note(args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(time.Now(), args)
}

// Change is what an operator changed, or was not allowed to change.
type Change struct {
	What    string
	Token   *Token // nil: there are no tokens
	From    string // the address
	Code    string // of the error; "": it was done
	Message string // of the error
	Refused bool   // it was forbidden, whatever the code
}

// Change writes the line of a change, with the names and values that say about what.
func (a *Audit) Change(c *Change, about ...any) {
	line := []any{"what", c.What}
	if c.Token != nil {
		line = append(line, "who", c.Token.Name, "token_id", c.Token.ID)
	}
	line = append(append(line, about...), "from", c.From, "result", cmp.Or(c.Code, "ok"))
	if c.Code != "" {
		line = append(line, "error", c.Message)
	}
	if c.Refused || c.Code == "forbidden" {
		a.Refused(c.Token, c.From, line...)
		return
	}
	a.Note(line...)
}

// note writes a line, and before it how many are missing, if any. Called with a.mu held.
func (a *Audit) note(now time.Time, args []any) {
	a.recover(now)
	if err := a.write(now, args); err != nil {
		a.lose(err)
	}
}

// write writes a line. Called with a.mu held.
func (a *Audit) write(now time.Time, args []any) error {
	a.line.Reset()
	if a.torn {
		a.line.WriteByte('\n') // keeps the torn line apart from this one
	}
	r := slog.NewRecord(now, slog.LevelInfo, "", 0)
	r.Add(args...)
	if err := a.handler.Handle(context.Background(), r); err != nil {
		return err
	}
	n, err := a.out.Write(a.line.Bytes())
	if n > 0 {
		a.torn = a.line.Bytes()[min(n, a.line.Len())-1] != '\n'
	}
	if err == nil && n < a.line.Len() {
		err = io.ErrShortWrite
	}
	return err
}

// recover writes how many lines are missing, if any. Called with a.mu held.
func (a *Audit) recover(now time.Time) {
	if a.missing == 0 {
		return
	}
	err := a.write(now, []any{"what", "lines lost", "count", a.missing})
	if err == nil {
		a.missing = 0
	}
	a.troubled(err)
}

// troubled keeps the result of Trouble. Called with a.mu held.
func (a *Audit) troubled(err error) {
	if err == nil {
		a.trouble.Store(nil)
		return
	}
	err = fmt.Errorf("%w; lines missing: %d", err, a.missing)
	a.trouble.Store(&err)
}

// lose notes that a line was not written. Called with a.mu held.
func (a *Audit) lose(err error) {
	if a.missing++; a.missing == 1 && !a.closed {
		a.timer.Reset(retryAfter)
	}
	a.troubled(err)
	if a.Lost != nil {
		a.Lost()
	}
	left, ok := a.told.Next()
	if !ok {
		return
	}
	cmp.Or(a.Logger, slog.Default()).Error("a line of the audit log could not be written", "error", err, "line", string(bytes.TrimSpace(a.line.Bytes())), "not_told", left)
}

// retryAfter is how soon to try again to write how many lines are missing. So the trouble ends
// without another change by an operator.
const retryAfter = time.Second

// retry is called by a.timer.
func (a *Audit) retry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recover(time.Now()); a.missing > 0 && !a.closed {
		a.timer.Reset(retryAfter)
	}
}

// Trouble returns why lines are missing; nil: none is missing. It never waits.
func (a *Audit) Trouble() error {
	if err := a.trouble.Load(); err != nil {
		return *err
	}
	return nil
}
