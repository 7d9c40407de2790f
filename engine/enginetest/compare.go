package enginetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// sameInfo returns the fields in which got differs from want, "" if there are none.
func sameInfo(got, want engine.Info) string {
	var diffs []string
	differ := func(name string, g, w any) { diffs = append(diffs, fmt.Sprintf("%s is %v, not %v", name, g, w)) }
	if got.ID != want.ID || got.Queue != want.Queue || got.Key != want.Key {
		differ("message", fmt.Sprint(got.Queue, " ", got.ID, " ", got.Key), fmt.Sprint(want.Queue, " ", want.ID, " ", want.Key))
	}
	if got.State != want.State {
		differ("state", got.State, want.State)
	}
	if got.Attempt != want.Attempt {
		differ("attempt", got.Attempt, want.Attempt)
	}
	if got.LastError != want.LastError {
		differ("last error", got.LastError, want.LastError)
	}
	if !slices.EqualFunc(got.Failures, want.Failures, sameFailure) {
		differ("failures", got.Failures, want.Failures)
	}
	if got.Worker != want.Worker {
		differ("worker", got.Worker, want.Worker)
	}
	if !got.Started.Equal(want.Started) {
		differ("started", got.Started, want.Started)
	}
	if !got.Due.Equal(want.Due) {
		differ("due", got.Due, want.Due)
	}
	if !got.Created.Equal(want.Created) {
		differ("created", got.Created, want.Created)
	}
	if !got.Expires.Equal(want.Expires) {
		differ("expires", got.Expires, want.Expires)
	}
	if !got.Deadline.Equal(want.Deadline) {
		differ("deadline", got.Deadline, want.Deadline)
	}
	if !got.Died.Equal(want.Died) {
		differ("died", got.Died, want.Died)
	}
	if got.Ending != want.Ending || !got.Ended.Equal(want.Ended) || !got.Forgotten.Equal(want.Forgotten) {
		differ("end", fmt.Sprint(got.Ending, " at ", got.Ended, " until ", got.Forgotten), fmt.Sprint(want.Ending, " at ", want.Ended, " until ", want.Forgotten))
	}
	diffs = append(diffs, sameContent(got.Content, want.Content), samePolicy(got.Policy, want.Policy))
	diffs = slices.DeleteFunc(diffs, func(s string) bool { return s == "" })
	if len(diffs) == 0 {
		return ""
	}
	return fmt.Sprintf("id %v: %s", want.ID, strings.Join(diffs, "; "))
}

func sameFailure(a, b engine.Failure) bool {
	return a.At.Equal(b.At) && a.Attempt == b.Attempt && a.Worker == b.Worker && a.Reason == b.Reason
}
