package server

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// exchange is one request on its way to its answer: the writer of the answer, and
// what the request holds until it is over.
type exchange struct {
	http.ResponseWriter
	s       *Server
	conn    *conn // nil: another server's
	request *http.Request
	began   time.Time // its headers had been read
	last    time.Time // until when all may be written; zero: as long as the client reads
	ended   time.Time // the answer was written, where that is known for certain; zero: it is over when the handler is
	path    wire.Path
	route   *route        // nil: none
	status  int           // of the answer; 0: 200, or none yet
	held    int64         // bytes taken from the server's budget
	reading bool          // of the body; 100 Continue was sent if the client waits for it
	get     bool          // nothing is done but to answer
	token   *access.Token // of the request; nil: it has none
	noted   []any         // for the audit log: names and values
	failed  bool          // and the answer, of lines, has said so
	refused bool          // nothing was done, as it was not allowed
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func (s *Server) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := exchanges.Get().(*exchange)
	*x = exchange{ResponseWriter: w, s: s, conn: connOf(r.Context()), request: r, began: time.Now(), get: r.Method == http.MethodGet || r.Method == http.MethodHead}
	if r.Body != nil && r.Body != http.NoBody && (x.get || r.Method == http.MethodDelete) {
		x.readFrom(x.began) // only net/http reads it, before it sends the answer
	}
	return x
}

// end gives back what the request held.
func (x *exchange) end() {
	x.s.budget.give(x.held)
	*x = exchange{}
	exchanges.Put(x)
}

// WriteHeader notes the status.
func (x *exchange) WriteHeader(status int) {
	if x.status < http.StatusOK { // 1xx come before the answer
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write gives the client a timeout for each stride. A short answer that comes soon keeps the
// one that net/http has set.
func (x *exchange) Write(p []byte) (n int, err error) {
	for {
		if len(p) > shortWrite || time.Since(x.began) > x.s.cfg.WriteTimeout/8 {
			x.writeBy()
		}
		m, err := x.ResponseWriter.Write(p[n:min(n+stride, len(p))])
		if n += m; err != nil || n == len(p) {
			return n, err
		}
	}
}

// writeBy bounds how long the client may take to read what is written next.
func (x *exchange) writeBy() {
	if x.conn == nil {
		return
	}
	by := time.Now().Add(x.s.cfg.WriteTimeout)
	if !x.last.IsZero() && x.last.Before(by) {
		by = x.last
	}
	_ = x.conn.SetWriteDeadline(by)
}

// answered tells Config.Answered of a request.
func (x *exchange) answered(method string) {
	name, status := "other", x.status
	if x.route == nil {
		method = "other"
	} else {
		name = x.route.name
	}
	if status == 0 {
		status = http.StatusOK
	}
	if x.ended.IsZero() {
		x.ended = time.Now()
	}
	x.s.cfg.Answered(name, method, status, x.ended.Sub(x.began))
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// What an exchange takes from the budget.
const (
	exchangeCost = 16 << 10 // each, with what net/http and its first buffers need
	unheld       = 4 << 10  // of each buffer, which exchangeCost covers
	headerCost   = 100      // each header, beside its bytes
	smallMost    = 40 << 10 // up to this size an exchange is small, as nearly all are;
	smallReserve = 16 << 20 // small ones have so much more, so that large ones do not stop them
)

// hold takes n bytes from the budget until the exchange ends, but for the unheld
// first. When there is no room it returns the error to answer with.
func (x *exchange) hold(n int) error {
	if n <= unheld {
		return nil
	}
	return x.take(int64(n - unheld))
}

func (x *exchange) take(n int64) error {
	more := int64(0)
	if x.held+n <= smallMost {
		more = smallReserve
	}
	if !x.s.budget.take(n, more) {
		return refusal(http.StatusServiceUnavailable, "unavailable",
			"the server's memory for requests and answers is used up", "try again, with fewer messages in a request")
	}
	x.held += n
	return nil
}

// shortWrite is for how many bytes the kernel nearly always has room at once.
const shortWrite = 4 << 10

// dropHeaders frees the headers of a request, which are not needed any more, before waiting
// for the client.
func (x *exchange) dropHeaders() {
	if x.conn != nil { // else another handler may read them
		x.request.Header = nil
	}
}

// give gives back n of the bytes that were taken.
func (x *exchange) give(n int64) {
	x.held -= n
	x.s.budget.give(n)
}

// stride is how much a client has to send, or read, within each timeout.
const stride = 64 << 10

// readFrom bounds how long the client may take from now on for the next stride of the
// request's body.
func (x *exchange) readFrom(now time.Time) { x.readBy(now.Add(x.s.cfg.ReadTimeout)) }

// readBy sets until when the client may take for it; zero: no bound.
func (x *exchange) readBy(t time.Time) {
	// A writer that has no connection below it needs no deadline.
	_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(t)
}

// continues reports whether the client waits to be told that the body is welcome.
func (x *exchange) continues(r *http.Request) bool {
	return !x.reading && r.ProtoAtLeast(1, 1) && strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

// budget is a number of bytes that many share.
type budget struct {
	most int64
	used atomic.Int64
}

// take takes n bytes unless fewer are left, with some more than for others.
func (b *budget) take(n, more int64) bool {
	if b.used.Add(n) > b.most+more {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) {
	if n > 0 {
		b.used.Add(-n)
	}
}
