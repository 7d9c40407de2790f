package wire

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// AppendString appends a string in quotes. Invalid UTF-8 is replaced.
func AppendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // the error could only be about invalid UTF-8
	return b
}

// AppendJSON appends a struct of this package that has JSON tags.
func AppendJSON(b []byte, v any) []byte {
	j, _ := json.Marshal(v) // nothing in the structs of this package can fail
	return append(b, j...)
}

// TimeFormat is how answers write times.
const TimeFormat = "2006-01-02T15:04:05.000Z"

var lastTime = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC) // where RFC 3339 ends

// AppendTime appends a time in quotes, or null for the zero time. A time after the year
// 9999 becomes the end of that year.
func AppendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	if t = t.UTC(); t.After(lastTime) {
		t = lastTime
	}
	year, month, day := t.Date()
	if year < 0 {
		b = append(b, '"')
		b = t.AppendFormat(b, TimeFormat)
		return append(b, '"')
	}
	hour, minute, second := t.Clock()
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b, '"',
		digit(year/1000), digit(year/100), digit(year/10), digit(year), '-',
		digit(int(month)/10), digit(int(month)), '-', digit(day/10), digit(day), 'T',
		digit(hour/10), digit(hour), ':', digit(minute/10), digit(minute), ':', digit(second/10), digit(second), '.',
		digit(ms/100), digit(ms/10), digit(ms), 'Z', '"')
}

// digit returns the last decimal digit of n.
func digit(n int) byte { return '0' + byte(n%10) }

// AppendDuration appends a duration in quotes, without days.
func AppendDuration(b []byte, d time.Duration) []byte {
	b = append(b, '"')
	b = append(b, duration.Format(d)...)
	return append(b, '"')
}

func appendID(b []byte, id engine.ID) []byte {
	b = append(b, '"')
	b = strconv.AppendUint(b, uint64(id), 10)
	return append(b, '"')
}

// appendAll appends an array.
func appendAll[T any](b []byte, all []T, one func(b []byte, v *T) []byte) []byte {
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, &all[i])
	}
	return append(b, ']')
}
