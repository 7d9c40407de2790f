package redisengine

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) {
	atStart = scriptsMade()
	flag.Parse()
	said := make(map[string]bool)
	flag.Visit(func(f *flag.Flag) { said[f.Name] = true })
	// Most of what these tests do is wait for servers and for time to pass, so more of
	// them run at once than there are processors. To fuzz is to compute.
	if !said["test.parallel"] && !said["test.fuzz"] {
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err) // there is such a flag
		}
	}
	leaktest.Main(m,
		// A client of a cluster sleeps out its delays, of five seconds at most, after it
		// is closed: before it closes connections that it has no use for any more,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		// or that lead to another node than before,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		// and before it refreshes the topology.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}
