package wire

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Server is a server's description of itself. Fields that the sending server does not know
// are 0.
type Server struct {
	Version      string          `json:"version"`
	Engine       string          `json:"engine"`
	Capabilities map[string]bool `json:"capabilities"`
	Limits       Limits          `json:"limits" doc:"0, and \"0s\" of max_delay: no limit"`
	Trends       bool            `json:"trends" doc:"whether it keeps what happened: /v1/trends"`
	Now          Time            `json:"now"`

	Beanstalk *BeanstalkClients `json:"beanstalk,omitempty" doc:"clients that speak beanstalkd's protocol; missing where it is not served"`
}

// BeanstalkClients are the connections of clients that speak beanstalkd's protocol.
type BeanstalkClients struct {
	Connections int64 `json:"connections"`
	Waiting     int64 `json:"waiting" doc:"those that wait for a job"`
}

// Limits are the limits of requests and messages. 0: no limit.
type Limits struct {
	MaxBody     int        `json:"max_body" doc:"bytes of a message's body"`
	MaxPending  int64      `json:"max_pending" doc:"live messages"`
	MaxRequest  int        `json:"max_request" doc:"bytes of a request"`
	MaxBatch    int        `json:"max_batch" doc:"messages, refs or settlements of a request"`
	MaxAtomic   int        `json:"max_atomic" doc:"messages of an atomic push"`
	AtomicBytes int        `json:"max_atomic_bytes" doc:"bytes of their bodies, headers and keys together"`
	MaxLease    int        `json:"max_lease" doc:"messages of a lease request"`
	MaxWait     Duration   `json:"max_wait" doc:"of a lease request"`
	MaxQueues   int        `json:"max_queues" doc:"of a lease request"`
	MaxNow      int        `json:"max_queues_no_wait" doc:"of a lease request without a wait"`
	MinTTR      Duration   `json:"min_ttr"`
	MaxTTR      Duration   `json:"max_ttr"`
	MaxQueue    int        `json:"max_queue_bytes" doc:"bytes of a queue's name"`
	MaxKey      int        `json:"max_key_bytes" doc:"bytes of a key"`
	MaxHeaders  int        `json:"max_headers" doc:"headers of a message"`
	HeaderBytes int        `json:"max_header_bytes" doc:"bytes of all header names and values of a message"`
	MaxBackoffs int        `json:"max_backoffs" doc:"entries of a backoff"`
	MaxAttempts int        `json:"max_attempts"`
	MaxDelay    Duration   `json:"max_delay"`
	Delays      []Duration `json:"delays,omitempty" doc:"the only ones there are, if not all are possible"`
	Precision   Duration   `json:"precision" doc:"how exactly dues are kept"`
	OrderWindow int        `json:"order_window" doc:"among how many ready messages of a queue the order is exact; 1: they go out as they fell due, more or less"`
	MaxForecast int        `json:"max_forecast_steps"`
}

// Caller is a server's description of the caller.
type Caller struct {
	Name    string   `json:"name" doc:"of the token; empty where the server asks for none"`
	Scopes  []string `json:"scopes" doc:"what the token may do; admin where the server asks for none"`
	Queues  []string `json:"queues" doc:"names and patterns of the queues on which it may"`
	Expires Time     `json:"expires" doc:"from then on the token is worth nothing; null: never"`
}

// abilities are the capabilities of an engine that a server reports.
var abilities = []string{
	"durable", "keys", "priority", "expiry", "cancel", "reschedule", "get", "extend", "give_back",
	"remote_leases", "claim", "list", "count", "forecast", "pause", "purge", "redrive", "range", "if_state",
	"claim_if", "peek", "find", "reprioritize", "remember", "isolate", "history", "failures", "workers",
	"settings", "shares", "atomic",
}

// ability returns the field of the capabilities that has this name.
func ability(c *engine.Capabilities, name string) reflect.Value {
	field := strings.ReplaceAll(name, "_", "")
	return reflect.ValueOf(c).Elem().FieldByNameFunc(func(of string) bool { return strings.EqualFold(of, field) })
}

// Tell sets the name, capabilities and limits of an engine. It keeps the server's limits.
func (s *Server) Tell(c engine.Capabilities) {
	s.Engine, s.Capabilities = c.Name, make(map[string]bool)
	for _, name := range abilities {
		s.Capabilities[name] = ability(&c, name).Bool()
	}
	l := &s.Limits
	l.MaxPending, l.MaxDelay, l.Delays = c.MaxPending, Duration(c.MaxDelay), nil
	for _, d := range c.Delays {
		l.Delays = append(l.Delays, Duration(d))
	}
	l.Precision, l.OrderWindow = Duration(c.Precision), c.Window
}

// Told returns the name, capabilities and limits of the engine behind a server, as Tell set
// them.
func (s *Server) Told() engine.Capabilities {
	c := engine.Capabilities{Name: s.Engine}
	c.MaxBody, c.MaxPending = s.Limits.MaxBody, s.Limits.MaxPending
	c.MaxDelay, c.Delays = s.Limits.MaxDelay.D(), durations(s.Limits.Delays)
	c.Precision, c.Window = s.Limits.Precision.D(), s.Limits.OrderWindow
	for _, name := range abilities {
		ability(&c, name).SetBool(s.Capabilities[name])
	}
	return c
}

func durations(told []Duration) (all []time.Duration) {
	for _, d := range told {
		all = append(all, d.D())
	}
	return all
}

// ReadServer reads a server's description of itself. It fails without the limits max_batch,
// max_lease and max_request, which shape requests.
func ReadServer(data []byte) (s Server, err error) {
	if err := json.Unmarshal(data, &s); err != nil {
		return Server{}, err
	}
	if l := s.Limits; l.MaxBatch < 1 || l.MaxLease < 1 || l.MaxRequest < 1 {
		return Server{}, Wrong("limits: max_batch, max_lease and max_request have to be there")
	}
	return s, nil
}

// Health is the shape of the answer that a server is alive, or ready for requests.
var Health = newShape("Health", "The server is there.", false, []field{
	{"status", wordsSchema("ok", "ready"), "", true},
	{"problems", arraySchema(problemFields.Ref(), 0), "what is wrong though requests are welcome, as of GET /v1/problems; missing without a valid token", false},
})

type readiness struct {
	Status   string    `json:"status"`
	Problems []Problem `json:"problems,omitempty"`
}

// AppendReady appends that the server is ready for requests, and the problems it has.
func AppendReady(b []byte, problems []Problem) []byte {
	return AppendJSON(b, readiness{"ready", problems})
}

// ServerTells is the shape of Server, made from its tags.
var ServerTells = newShape("Info", "What a server tells of itself and of the engine behind it.", false, tagged(reflect.TypeFor[Server]()))

// CallerTold is the shape of Caller, made from its tags.
var CallerTold = newShape("Caller", "The caller and its rights.", false, tagged(reflect.TypeFor[Caller]()))

// tagged returns the fields of a struct, by their json and doc tags. The fields of an
// embedded struct count as its own.
func tagged(t reflect.Type) (all []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			all = append(all, tagged(f.Type)...)
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, field{name, typed(f.Type), f.Tag.Get("doc"), option != "omitempty"})
	}
	return all
}

func typed(t reflect.Type) Schema {
	switch t {
	case reflect.TypeFor[Duration]():
		return isDuration
	case reflect.TypeFor[Time]():
		return isInstant
	case reflect.TypeFor[map[string]bool]():
		var fields []field
		for _, name := range abilities {
			fields = append(fields, field{name, isFlag, "", true})
		}
		return newShape("", "What the engine can do.", false, fields).Schema()
	}
	switch t.Kind() {
	case reflect.Struct:
		return newShape("", "", false, tagged(t)).Schema()
	case reflect.Slice:
		return arraySchema(typed(t.Elem()), 0)
	case reflect.Array:
		return arraySchema(typed(t.Elem()), t.Len()).With("minItems", t.Len())
	case reflect.Pointer:
		return orNull(typed(t.Elem()))
	case reflect.Float64:
		return TypeSchema("number")
	case reflect.Bool:
		return isFlag
	case reflect.String:
		return isText
	}
	return isCount
}
