package server

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

var (
	pauseFields   = []string{"for"}
	purgeFields   = []string{"dead"}
	redriveFields = []string{"ids", "limit"}
)

// pause stops leasing of a queue, for good unless told for how long.
func (s *Server) pause(x *exchange, r *http.Request) error {
	var d time.Duration
	err := s.options(x, r, pauseFields, func(in *input, _ int) {
		if d = in.duration("for"); d == 0 {
			in.wrong("for: must be longer than nothing; leave it out to pause for good")
		}
	})
	if err == nil {
		err = s.c.Pause(r.Context(), value(r, "queue"), d)
	}
	return s.counted(x, 1, err)
}

func (s *Server) resume(x *exchange, r *http.Request) error {
	err := s.options(x, r, nil, nil)
	if err == nil {
		err = s.c.Resume(r.Context(), value(r, "queue"))
	}
	return s.counted(x, 1, err)
}

func (s *Server) purge(x *exchange, r *http.Request) error {
	dead := false
	err := s.options(x, r, purgeFields, func(in *input, _ int) { dead = in.flag("dead") })
	if err != nil {
		return err
	}
	n, err := s.c.Purge(r.Context(), value(r, "queue"), dead)
	if err != nil && n > 0 {
		f := *toFailure(err)
		f.hint = fmt.Sprintf("%d messages are gone already; purge again for the rest", n)
		x.Header().Set("Tarry-Count", strconv.FormatInt(n, 10))
		err = &f
	}
	return s.counted(x, n, err)
}

func (s *Server) redrive(x *exchange, r *http.Request) error {
	var ids []engine.ID
	var most int
	err := s.options(x, r, redriveFields, func(in *input, f int) {
		if f == 1 {
			most = int(in.whole("limit", math.MaxInt32))
			return
		}
		in.texts("ids", tarry.MaxBatch, func(text string) {
			id, err := engine.ParseID(text)
			if err != nil {
				in.wrong("ids: %q is not an id", clip(text))
			}
			ids = append(ids, id)
		})
		if len(ids) == 0 {
			in.wrong("ids: is empty; leave it out to redrive all")
		}
	})
	if err != nil {
		return err
	}
	n, err := s.c.Redrive(r.Context(), value(r, "queue"), ids, most)
	if err != nil {
		return err
	}
	a := newAnswer()
	defer a.free()
	a.b = append(a.b, `{"count":`...)
	a.b = strconv.AppendInt(a.b, n.Redriven, 10)
	a.b = append(a.b, `,"skipped":`...)
	a.b = strconv.AppendInt(a.b, n.Skipped, 10)
	a.b = append(a.b, '}')
	return s.send(x, a, http.StatusOK)
}

// counted answers how many of what were concerned.
func (s *Server) counted(x *exchange, n int64, err error) error {
	if err != nil {
		return err
	}
	return s.answer(x, `{"count":`+strconv.FormatInt(n, 10)+`}`)
}
