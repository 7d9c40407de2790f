package server

import (
	"net/http"
	"strconv"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// reference returns the message that a path names.
func reference(r *http.Request) (queue string, ref engine.Ref, err error) {
	queue = value(r, "queue")
	if s := value(r, "id"); s != "" {
		id, err := engine.ParseID(s)
		if err != nil {
			return "", ref, wrong("id: %q is not an id", clip(s)).withHint("an id is a decimal number such as 42; by key the path is /v1/queues/{queue}/keys/{key}")
		}
		return queue, tarry.ByID(id), nil
	}
	return queue, tarry.ByKey(value(r, "key")), nil
}

func (s *Server) get(x *exchange, r *http.Request) error {
	queue, ref, err := reference(r)
	if err != nil {
		return err
	}
	if _, err := query(r); err != nil {
		return err
	}
	m, err := s.c.Get(r.Context(), queue, ref)
	if err != nil {
		return err
	}
	a := newAnswer()
	defer a.free()
	a.b = appendMessage(a.b, &m, "", wantBodies(r))
	return s.send(x, a, http.StatusOK)
}

func (s *Server) cancel(x *exchange, r *http.Request) error {
	queue, ref, err := reference(r)
	if err != nil {
		return err
	}
	if _, err := query(r); err != nil {
		return err
	}
	if err := s.c.Cancel(r.Context(), queue, ref); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

var rescheduleFields = []string{"delay", "due"}

func (s *Server) reschedule(x *exchange, r *http.Request) error {
	queue, ref, err := reference(r)
	if err != nil {
		return err
	}
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	var seen uint32
	var due tarry.Due
	if in.open("request", '{') {
		for {
			switch in.next(rescheduleFields, &seen) {
			case 0:
				due = tarry.In(in.duration("delay"))
				continue
			case 1:
				due = tarry.At(in.instant("due"))
				continue
			}
			break
		}
		switch seen {
		case 0:
			in.wrong("delay: is missing, and so is due; give one")
		case 3:
			in.wrong("delay: give delay or due, not both")
		}
	}
	in.end()
	if err := in.failed(); err != nil {
		return err
	}
	in.free()
	m, err := s.c.Reschedule(r.Context(), queue, ref, due)
	if err != nil {
		return err
	}
	a := newAnswer()
	defer a.free()
	a.b = appendMessage(a.b, &m, "", noBodies)
	return s.send(x, a, http.StatusOK)
}

var (
	cancelFields = []string{"refs"}
	refFields    = []string{"queue", "key", "id"}
)

// cancelMany cancels messages of any queues, each alone.
func (s *Server) cancelMany(x *exchange, r *http.Request) error {
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	refs, bad := in.refs()
	if err := in.failed(); err != nil {
		return err
	}
	if err := x.hold(len(refs) * itemSize); err != nil {
		return err
	}
	in.free()
	good, at := make([]engine.Ref, 0, len(refs)), make([]int, 0, len(refs))
	errs := make([]error, len(refs))
	for i, ref := range refs {
		if bad[i] != nil {
			errs[i] = bad[i]
		} else {
			good, at = append(good, ref), append(at, i)
		}
	}
	got, err := s.c.CancelMany(r.Context(), good)
	if err != nil {
		return err
	}
	for j, err := range got {
		errs[at[j]] = err
	}
	a := newAnswer()
	defer a.free()
	a.b = append(a.b, `{"results":[`...)
	failed := 0
	for i, err := range errs {
		if i > 0 {
			a.b = append(a.b, ',')
		}
		a.b = append(a.b, `{"queue":`...)
		a.b = appendString(a.b, clipLong(refs[i].Queue))
		if refs[i].ID != 0 {
			a.b = append(a.b, `,"id":`...)
			a.b = appendID(a.b, refs[i].ID)
		} else {
			a.b = append(a.b, `,"key":`...)
			a.b = appendString(a.b, clipLong(refs[i].Key))
		}
		a.b = appendOK(a.b, err, &failed)
		a.b = append(a.b, '}')
	}
	a.endResults(failed)
	return s.send(x, a, http.StatusOK)
}

// clipLong shortens what is longer than any key may be.
func clipLong(s string) string {
	if len(s) <= tarry.MaxKeyBytes {
		return s
	}
	return clip(s)
}

func appendOK(b []byte, err error, failed *int) []byte {
	if err == nil {
		return append(b, `,"ok":true`...)
	}
	*failed++
	b = append(b, `,"ok":false,`...)
	return appendError(b, toFailure(err))
}

func (a *answer) endResults(failed int) {
	a.b = append(a.b, `],"failed":`...)
	a.b = strconv.AppendInt(a.b, int64(failed), 10)
	a.b = append(a.b, '}')
}

// refs reads the references of a request, and what is wrong with each.
func (in *input) refs() (refs []engine.Ref, bad []*failure) {
	in.elements(cancelFields[0], func() {
		var seen uint32
		var ref engine.Ref
		if in.open("ref", '{') {
			for {
				switch in.next(refFields, &seen) {
				case 0:
					ref.Queue = in.text("queue")
					continue
				case 1:
					ref.Key = in.text("key")
					continue
				case 2:
					s, ok := in.bytes("id")
					id, err := engine.ParseID(string(s))
					if ok && err != nil {
						in.wrong("id: %q is not an id", clip(string(s)))
					}
					ref.ID = id
					continue
				}
				break
			}
		}
		refs, bad = append(refs, ref), append(bad, in.bad)
	})
	return refs, bad
}

// elements reads a request of one field, an array whose elements fail alone: each
// reads one of them and takes what is wrong with it from in.bad.
func (in *input) elements(name string, each func()) {
	var seen uint32
	names := [1]string{name}
	if in.open("request", '{') {
		for in.next(names[:], &seen) == 0 {
			if !in.open(name, '[') {
				continue
			}
			outside := in.bad
			for n := 0; in.more(); n++ {
				if n == tarry.MaxBatch {
					in.err = refusal(http.StatusRequestEntityTooLarge, "too_large",
						"more than "+strconv.Itoa(tarry.MaxBatch)+" "+name+" in one request", "send them in several requests")
					return
				}
				in.bad = nil
				each()
			}
			in.bad = outside
		}
		if seen == 0 {
			in.wrong("%s: is missing", name)
		}
	}
	in.end()
}
