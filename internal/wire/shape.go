package wire

import (
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// Shape describes a JSON object of the API, or the parameters of a query: the names of its
// fields, and what the OpenAPI document says about each.
type Shape struct {
	Name   string // among the document's schemas; "" for parameters
	doc    string
	fields []field
	names  []string
	strict bool // it is a request, which must not have unknown fields
	Bare   bool // it is a request that may have no body
}

// field is a field of an object, or a parameter.
type field struct {
	name     string
	is       Schema
	doc      string
	required bool // it is always there in answers, and required in requests
}

func newShape(name, doc string, strict bool, fields []field) *Shape {
	s := &Shape{Name: name, doc: doc, fields: fields, strict: strict}
	for _, f := range fields {
		s.names = append(s.names, f.name)
	}
	return s
}

// without returns the names of all fields except names.
func (s *Shape) without(names ...string) (rest []string) {
	for _, n := range s.names {
		if !slices.Contains(names, n) {
			rest = append(rest, n)
		}
	}
	return rest
}

// Ref refers to the shape among the document's schemas.
func (s *Shape) Ref() Schema { return refSchema(s.Name) }

// Schema returns the shape as a schema of the document.
func (s *Shape) Schema() Schema {
	o := TypeSchema("object")
	if s.doc != "" {
		o = o.With("description", s.doc)
	}
	var properties Schema
	var required []string
	for _, f := range s.fields {
		if s.strict && !f.required {
			f.is = orNull(f.is) // null counts as missing
		}
		properties = properties.With(f.name, f.schema())
		if f.required {
			required = append(required, f.name)
		}
	}
	if properties == nil {
		properties = Schema{}
	}
	o = o.With("properties", properties)
	if required != nil {
		o = o.With("required", required)
	}
	if s.strict {
		o = o.With("additionalProperties", false)
	}
	return o
}

func (f *field) schema() Schema {
	if f.doc == "" {
		return f.is
	}
	return append(Schema{{Name: "description", Value: f.doc}}, f.is...)
}

// Parameters returns the shape's fields as parameters of a query.
func (s *Shape) Parameters() (all []Schema) {
	for _, f := range s.fields {
		p := Schema{{Name: "name", Value: f.name}, {Name: "in", Value: "query"}, {Name: "description", Value: f.doc}}
		all = append(all, p.With("schema", f.is))
	}
	return all
}

// Shapes are the shapes that the document has as named schemas.
var Shapes = []*Shape{
	NewMessage.Shape, batchMessage.Shape, NewBatch.Shape, pushedShape.Shape, pushFailed.Shape, PushResults,
	Kept.Shape, failureFields.Shape, finished.Shape, LeasedMessage.Shape, MessagePage.Shape, FoundPage,
	Rescheduling.Shape, Cancelling.Shape, refFields.Shape, CancelResults, CancelResult.Shape,
	Leasing.Shape, roomFields.Shape, LeaseAnswer.Shape, grantedFields.Shape, Claiming.Shape, PollEnding.Shape,
	Settling.Shape, settlementFields.Shape, SettleResults, SettleResult.Shape,
	QueuePage.Shape, QueueHolds.Shape, ForecastAnswer.Shape, Bucket.Shape, ForecastsAnswer, TrendAnswer, TrendsAnswer, DeadGroupsAnswer, WorkersAnswer, IntakesAnswer,
	Configuring.Shape, settingFields.Shape, Configured.Shape, answeredSettings.Shape, Pausing.Shape, Purging.Shape,
	SettingSchedule.Shape, scheduledMessage.Shape, PreviewingSchedule.Shape, ScheduleTimes.Shape, StoredSchedule.Shape, storedMessage.Shape, ScheduleRun.Shape, SchedulePage.Shape,
	Redriving.Shape, Dropping.Shape, None.Shape, Counted.Shape, Redriven.Shape, Backing.Shape, BackedUp.Shape,
	ServerTells, CallerTold, Health, ProblemsAnswer, problemFields,
	Failed.Shape, errorFields.Shape,
}

// FoundMessage is the schema of a message that was looked up or listed.
var FoundMessage = Schema{{Name: "oneOf", Value: []Schema{Kept.Ref(), finished.Ref()}}}

// The schemas of common fields.
var (
	isQueue = textSchema(1, engine.MaxQueueBytes).With("pattern", `^[A-Za-z0-9+/;.$_()][-A-Za-z0-9+/;.$_()]*$`).With("examples", []string{"order.unpaid"})
	isKey   = textSchema(1, engine.MaxKeyBytes).With("examples", []string{"42"})
	isID    = TypeSchema("string").With("pattern", `^[1-9][0-9]{0,19}$`).With("examples", []string{"1"})
	isName  = textSchema(1, MaxPollName)
	isText  = TypeSchema("string")
	isFlag  = TypeSchema("boolean")

	isDuration = TypeSchema("string").With("pattern", `^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(d|h|m|s|ms|us|µs|μs|ns))+)$`).With("examples", []string{"1500ms", "30m", "48h", "7d"})
	isTime     = TypeSchema("string").With("format", "date-time").With("examples", []string{"2030-01-31T23:59:59.999Z"})
	isInstant  = orNull(isTime) // null: none, or not known
	isCount    = TypeSchema("integer").With("minimum", 0)
	isBase64   = TypeSchema("string").With("contentEncoding", "base64")

	isState = wordsSchema(words(engine.Scheduled, engine.Finished)...)

	isHeaders = Schema{{Name: "anyOf", Value: []Schema{
		TypeSchema("object").With("additionalProperties", Schema{{Name: "anyOf", Value: []Schema{isText, arraySchema(isText, engine.MaxHeaders)}}}),
		arraySchema(arraySchema(isText, 2).With("minItems", 2), 0),
	}}}
)

// results returns the shape of an answer with one result for each item of a request.
func results(name, doc string, one Schema) *Shape {
	return newShape(name, doc, false, []field{
		{"results", arraySchema(one, 0), "one for each item of the request, in its order", true},
		{"failed", isCount, "how many of them failed", true},
	})
}
