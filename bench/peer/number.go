package peer

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/tarryhq/tarry/bench/scenario"
)

// numbered is the body of message i for systems that tell a worker no key: it begins with i.
func numbered(i int) []byte { return fmt.Appendf(nil, "%d %s", i, scenario.Body(i)) }

// number returns the i of a numbered body.
func number(body []byte) int {
	text, _, _ := bytes.Cut(body, []byte(" "))
	i, err := strconv.Atoi(string(text))
	if err != nil {
		panic("a message that was not pushed: " + string(text))
	}
	return i
}
