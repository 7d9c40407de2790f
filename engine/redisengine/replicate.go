package redisengine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// errReplicas is what a call ends with that was carried out, but did not reach as many
// replicas as Config.Replicas asks for.
var errReplicas = errors.New("too few replicas have answered")

// replicaPatience is how long replicas may take to say that they have what was written.
const replicaPatience = time.Second

// sendReplicated is send for scripts whose work must not be lost when a replica takes
// over: behind each, on the same connection, it waits for so many replicas.
func (e *Engine) sendReplicated(ctx context.Context, cmds []rueidis.Completed) []result {
	results := make([]result, len(cmds))
	var wg sync.WaitGroup
	for i := range cmds {
		wg.Go(func() {
			_ = e.client.Dedicated(func(c rueidis.DedicatedClient) error {
				wait := c.B().Arbitrary("WAIT", strconv.Itoa(e.replicas), strconv.FormatInt(replicaPatience.Milliseconds(), 10)).Build()
				got := e.trip(ctx, c, cmds[i], wait)
				r := &results[i]
				if r.message, r.err = got[0].ToMessage(); r.err != nil {
					return nil
				}
				switch n, err := got[1].AsInt64(); {
				case err != nil:
					r.err = fmt.Errorf("%w: %v", errReplicas, err)
				case n < int64(e.replicas):
					r.err = fmt.Errorf("%w: %d of %d", errReplicas, n, e.replicas)
				}
				return nil
			})
		})
	}
	wg.Wait()
	return results
}
