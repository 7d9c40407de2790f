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

// errReplicas is the error of a call that was carried out but confirmed by fewer replicas
// than Config.Replicas.
var errReplicas = errors.New("too few replicas have answered")

// replicaTimeout is how long replicas may take to confirm a write.
const replicaTimeout = time.Second

// sendReplicated sends scripts with writes that must survive a failover. Each is followed, on
// the same connection, by a WAIT for the replicas.
func (e *Engine) sendReplicated(ctx context.Context, cmds ...rueidis.Completed) []answer {
	answers := make([]answer, len(cmds))
	var wg sync.WaitGroup
	for i := range cmds {
		wg.Go(func() {
			_ = e.client.Dedicated(func(c rueidis.DedicatedClient) error {
				wait := c.B().Arbitrary("WAIT", strconv.Itoa(e.replicas), strconv.FormatInt(replicaTimeout.Milliseconds(), 10)).Build()
				got := e.trip(ctx, c, cmds[i], wait)
				a := &answers[i]
				if a.values, a.err = got[0].ToArray(); a.err != nil {
					return nil
				}
				switch n, err := got[1].AsInt64(); {
				case err != nil:
					a.err = fmt.Errorf("%w: %v", errReplicas, err)
				case n < int64(e.replicas):
					a.err = fmt.Errorf("%w: %d of %d", errReplicas, n, e.replicas)
				}
				return nil
			})
		})
	}
	wg.Wait()
	return answers
}
