package wire

import (
	"strings"
	"testing"
)

// What is wrong with settings is said by the name of the field.
func TestWrongSettings(t *testing.T) {
	for text, want := range map[string]string{
		``:                                            "malformed JSON: it ends too early",
		`{}`:                                          "settings: is missing",
		`{"revision":"1"}`:                            "settings: is missing",
		`{"settings":[]}`:                             "settings: must be an object, not an array",
		`{"settings":{},"revision":""}`:               "revision: is empty; leave it out to overwrite whatever is stored",
		`{"settings":{},"revision":7}`:                "revision: must be a string, not a number",
		`{"settings":{"limit":1}}`:                    "limit: no such field",
		`{"settings":{"rate":1,"rate":2}}`:            "rate: given twice",
		`{"settings":null,"revision":"1"}`:            "settings: is missing",
		`{"settings":{"rate":null,"rate":2}}`:         "rate: given twice",
		`{"settings":{"rate":"NaN"}}`:                 "rate: must be a number, not a string",
		`{"settings":{"rate":NaN}}`:                   "malformed JSON",
		`{"settings":{"rate":0}}`:                     "rate: must be more than 0; leave it out for no limit",
		`{"settings":{"rate":-0.0}}`:                  "rate: must be more than 0; leave it out for no limit",
		`{"settings":{"rate":-1}}`:                    "rate: must be from one a day, which is 1.157e-05, to 1000000 a second, not -1",
		`{"settings":{"rate":1e999}}`:                 "rate: must be from one a day, which is 1.157e-05, to 1000000 a second, not 1e999",
		`{"settings":{"rate":0.00001}}`:               "rate: must be from one a day, which is 1.157e-05, to 1000000 a second, not 0.00001",
		`{"settings":{"in_flight":0}}`:                "in_flight: must be more than 0; leave it out for no limit",
		`{"settings":{"in_flight":-1}}`:               "in_flight: must be a whole number from 0 to 1000000000000, not -1",
		`{"settings":{"max_pending":1.5}}`:            "max_pending: must be a whole number from 0 to 1000000000000, not 1.5",
		`{"settings":{"burst":0}}`:                    "burst: must be more than 0; leave it out for no limit",
		`{"settings":{"burst":1000001}}`:              "burst: must be a whole number from 0 to 1000000, not 1000001",
		`{"settings":{"dead_max":0}}`:                 "dead_max: must be more than 0; leave it out for no limit",
		`{"settings":{"dead_keep":"0s"}}`:             "dead_keep: must be more than 0; leave it out to keep dead messages for ever",
		`{"settings":{"dead_keep":"-1s"}}`:            "dead_keep: -1s is negative",
		`{"settings":{"max_attempts":0}}`:             "max_attempts: must be at least 1; leave it out for the default",
		`{"settings":{"ttr":"25h"}}`:                  "ttr: 25h is outside 1ms to 24h",
		`{"settings":{"ttr":"999999999999h"}}`:        "ttr: 999999999999h is outside 1ms to 24h",
		`{"settings":{"remember":"3651d"}}`:           "remember: 3651d is outside 0s to 87600h",
		`{"settings":{"dead_keep":"-999999999999h"}}`: "dead_keep: -999999999999h is negative",
		`{"settings":{"backoff":["1s","x"]}}`:         `backoff[1]: "x" is not a duration`,
	} {
		var r Reader
		r.Reset([]byte(text))
		Configuring.Read(&r, new(Settings))
		if err := r.Err(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// An answer without settings is not one of a queue that has none.
func TestSettingsMissing(t *testing.T) {
	for _, text := range []string{`{}`, `{"revision":"1"}`, `{"settings":null,"revision":"1"}`} {
		if s, err := Configured.Answer([]byte(text)); err == nil || err.Error() != "settings: is missing" {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
}

// The hint is about what the error says, and about nothing found later.
func TestHintsOfSettings(t *testing.T) {
	const pause = "to hand out nothing pause the queue instead"
	for text, hint := range map[string]string{
		`{"settings":{"rate":0}}`:                    pause,
		`{"settings":{"in_flight":0,"rate":0}}`:      pause,
		`{"settings":{"in_flight":"a"}}`:             "",
		`{"settings":{"in_flight":-1}}`:              "",
		`{"settings":{"dead_max":0,"in_flight":0}}`:  "",
		`{"settings":{"limit":1,"ttr":5}}`:           "known here: priority, max_attempts, ttr, backoff, expire_after, remember, isolate, dead_keep, dead_max, history, history_max, max_pending, in_flight, burst, rate",
		`{"settings":{"ttr":5}}`:                     durationHint,
		`{"settings":{"ttr":"25h","dead_keep":"x"}}`: "",
	} {
		var r Reader
		r.Reset([]byte(text))
		Configuring.Read(&r, new(Settings))
		if e, ok := r.Err().(*Error); !ok || e.Hint != hint {
			t.Errorf("%s: %+v, want the hint %q", text, e, hint)
		}
	}
}
