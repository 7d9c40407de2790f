package server_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// A body that most parsers of JSON could not read does not keep others from being read
// with it.
func TestDeepBodiesSpoilNoAnswer(t *testing.T) {
	a := newAPI(t)
	deepest := func(v any) (depth int) {
		for {
			some, ok := v.([]any)
			if !ok {
				return depth
			}
			depth++
			if len(some) == 0 {
				return depth
			}
			v = some[0]
		}
	}
	for _, depth := range []int{1, 50, 51, 400} {
		body := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		queue := fmt.Sprint("q", depth)
		a.call(201, "POST", "/v1/queues/"+queue+"/messages", `{"key":"k","body":`+body+`}`)
		for _, m := range []any{
			a.call(200, "GET", "/v1/queues/"+queue+"/keys/k", ""),
			field(t, a.call(200, "GET", "/v1/queues/"+queue+"/messages?body=true", ""), "messages", 0),
			field(t, a.call(200, "POST", "/v1/lease", `{"queues":["`+queue+`"]}`), "messages", 0),
		} {
			text, _ := field(t, m, "body_base64").(string)
			kept, err := base64.StdEncoding.DecodeString(text)
			if plain := deepest(field(t, m, "body")); depth <= 50 && plain != depth || depth > 50 && (plain != 0 || err != nil || string(kept) != body) {
				t.Errorf("nested %d deep: %v", depth, m)
			}
			if field(t, m, "content_type") != "application/json" {
				t.Errorf("%v", m)
			}
		}
	}
}
