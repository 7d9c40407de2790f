package tarryprom

import (
	"fmt"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// Each kind of requests is counted apart, though many meet a new one at once.
func TestRequestsAreToldApart(t *testing.T) {
	m := New(nil)
	kinds := []struct {
		route, method string
		status        int
	}{{"/a", "GET", 200}, {"/a", "PUT", 200}, {"/b", "GET", 200}, {"/b", "PUT", 200}, {"/a", "GET", 404}, {"other", "other", 404}}
	const each = 1000
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range each {
				for i, k := range kinds {
					for range i + 1 {
						m.Answered(k.route, k.method, k.status, time.Millisecond)
					}
				}
			}
		})
	}
	callers.Wait()
	for i, k := range kinds {
		var got dto.Metric
		if err := m.vecs.requests.WithLabelValues(k.route, k.method, fmt.Sprint(k.status)).Write(&got); err != nil {
			t.Fatal(err)
		}
		if n := got.GetCounter().GetValue(); n != float64(4*each*(i+1)) {
			t.Errorf("%v: %v were counted, not %d", k, n, 4*each*(i+1))
		}
	}
}
