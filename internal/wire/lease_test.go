package wire

import (
	"testing"
	"time"
)

// What is wrong with a room is not taken for what is wrong with the request.
func TestWrongRooms(t *testing.T) {
	for room, want := range map[string]string{
		`{"queue":"q"}`:          "room[1].max: is missing",
		`{"max":1}`:              "room[1].queue: is missing",
		`{"queue":"q","max":-1}`: "room[1].max: must be a whole number from 0 to 1000, not -1",
		`7`:                      "room[1]: must be an object, not a number",
	} {
		var r Reader
		r.Reset([]byte(`{"queues":["q"],"max":5,"room":[{"queue":"q","max":0},` + room + `]}`))
		Leasing.Read(&r, new(LeaseRequest))
		if err := r.Err(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", room, err, want)
		}
	}
}

// A wait is told in whole milliseconds, and not at all when it was shorter.
func TestWaitedIsWhole(t *testing.T) {
	for waited, want := range map[time.Duration]string{
		999 * time.Microsecond:  `{"messages":[],"next_due":null,"now":null}`,
		2999 * time.Microsecond: `{"messages":[],"next_due":null,"now":null,"waited":"2ms"}`,
	} {
		if got := AppendLeased(nil, &Leased{Waited: waited}, Exactly); string(got) != want {
			t.Errorf("%s: %s, want %s", waited, got, want)
		}
	}
}
