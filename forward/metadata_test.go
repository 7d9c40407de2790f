package forward

import (
	"reflect"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

func message(headers ...Header) *tarry.Message[[]byte] {
	m := &tarry.Message[[]byte]{Info: tarry.Info{
		ID: 7, Queue: "order.paid", Key: "42", Attempt: 3,
		Due: time.Date(2026, 5, 4, 3, 2, 1, 20e6, time.FixedZone("", 3600)),
	}}
	m.Headers = headers
	return m
}

func TestMetadata(t *testing.T) {
	m := message(
		Header{Name: "Trace", Value: "a"},
		Header{Name: "trace", Value: "b"},
		Header{Name: "TARRY-id", Value: "8"}, // no message tells lies of itself
		Header{Name: "team", Value: "c"})
	got := Metadata(m, &Options{Headers: []Header{{Name: "Team", Value: "d"}}})
	want := []Header{
		{Name: "Tarry-Id", Value: "7"},
		{Name: "Tarry-Queue", Value: "order.paid"},
		{Name: "Tarry-Key", Value: "42"},
		{Name: "Tarry-Due", Value: "2026-05-04T02:02:01.020Z"},
		{Name: "Tarry-Attempt", Value: "3"},
		{Name: "Trace", Value: "a"},
		{Name: "trace", Value: "b"},
		{Name: "Team", Value: "d"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestMetadataOfAMessageWithoutKey(t *testing.T) {
	m := message(Header{Name: HeaderKey, Value: "feigned"})
	m.Key = ""
	for _, h := range Metadata(m, nil) {
		if h.Name == HeaderKey {
			t.Errorf("there is %v", h)
		}
	}
}
