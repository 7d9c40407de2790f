package server

import (
	"cmp"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// exchange is one request until it is answered. It is the writer of the answer, and holds what
// the request has taken.
type exchange struct {
	http.ResponseWriter
	s       *Server
	conn    *conn // nil: another server accepted it
	request *http.Request
	began   time.Time // when its headers had been read
	path    wire.Path
	route   *route        // nil: no route fits
	status  int           // of the answer; 0: none yet, which means 200 once written
	held    int64         // bytes taken from the server's budget
	reading bool          // the body is being read; 100 Continue was sent if the client waits for it
	get     bool          // GET or HEAD: it changes nothing
	token   *access.Token // of the request; nil: none
	worker  *worker       // that leases by the request; nil: none
	noted   []any         // names and values for the audit log
	failed  bool          // the request failed, and its answer in lines has said so
	refused bool          // all of the request was forbidden
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func (s *Server) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := exchanges.Get().(*exchange)
	*x = exchange{ResponseWriter: w, s: s, conn: connOf(r.Context()), request: r, began: time.Now(), get: r.Method == http.MethodGet || r.Method == http.MethodHead}
	if x.conn == nil && r.Body != nil && r.Body != http.NoBody { // else bounded has set the deadline
		x.readBy(x.began.Add(s.cfg.ReadTimeout))
	}
	return x
}

// end returns the bytes that the request took from the budget.
func (x *exchange) end() {
	x.s.budget.give(x.held)
	*x = exchange{}
	exchanges.Put(x)
}

// WriteHeader notes the status.
func (x *exchange) WriteHeader(status int) {
	if x.status < http.StatusOK { // 1xx come before the final answer
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// answered calls Config.Answered for a request.
func (x *exchange) answered(method string) {
	name := "other"
	if x.route == nil {
		method = "other"
	} else {
		name = x.route.name
	}
	x.s.cfg.Answered(name, method, cmp.Or(x.status, http.StatusOK), time.Since(x.began))
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// The share of an exchange in the budget.
const (
	exchangeCost = 16 << 10 // each request, for net/http and its first buffers
	unheld       = 4 << 10  // of each buffer, included in exchangeCost
	headerCost   = 100      // each header, besides its bytes
	smallMost    = 40 << 10 // an exchange up to this size is small, as nearly all are
	smallReserve = 16 << 20 // only for small ones, so that large ones do not stop them
)

// hold takes n bytes from the budget until the exchange ends, except for the first unheld
// ones. If there is no room it returns the error to answer with.
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

// dropHeaders frees the headers of a request, no longer needed, before a wait for the client.
func (x *exchange) dropHeaders() {
	if x.conn != nil { // else another server's handler may still read them
		x.request.Header = nil
	}
}

// give returns n of the bytes taken.
func (x *exchange) give(n int64) {
	x.held -= n
	x.s.budget.give(n)
}

// stride is how much a client must send or read within each timeout.
const stride = 64 << 10

// readBy sets the deadline for reading the request body; zero: none.
func (x *exchange) readBy(t time.Time) {
	// A writer without a connection below it needs no deadline.
	_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(t)
}

// continues reports whether the client still waits for 100 Continue before it sends the body.
func (x *exchange) continues(r *http.Request) bool {
	return !x.reading && r.ProtoAtLeast(1, 1) && strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

// budget is a number of bytes shared by many requests.
type budget struct {
	most int64
	used atomic.Int64
}

// take takes n bytes unless fewer are left. more is an extra allowance for this caller.
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
