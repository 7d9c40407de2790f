package cli

import (
	"context"
	"net/url"
	"strconv"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

var queueSteps = []step{
	{args: `queue get mail`, stdout: `nothing is set for mail: defaults hold, and no limits \(revision 0\)\n`, stderr: noStoreYet},
	{args: `queue get mail --json`, stdout: `{"settings":{},"revision":"0"}\n`, stderr: noStoreYet},
	{args: `queue set mail --rate 100 --burst 5 --in-flight 10 --dead-keep 7d --dead-max 50 --max-pending 1000 --max-attempts 5 --backoff 1s,2m --ttr 30s --priority 0 --expire-after 0 --remember 1d`,
		stdout: `SETTING  VALUE  MEANING\npriority  0  .*\nmax-attempts  5  .*\nbackoff  1s,2m  .*\nttr  30s  .*\nexpire-after  never  .*\nremember  24h  .*\ndead-keep  168h  .*\ndead-max  50  .*\nmax-pending  1000  .*\nin-flight  10  .*\nrate  100  .*\nburst  5  .*\nrevision  1  .*\n`},
	{args: `queue set mail --unset rate,dead_keep --unset burst --in-flight 2 --json`,
		stdout: `{"settings":{"priority":0,"max_attempts":5,"ttr":"30s","backoff":\["1s","2m"\],"expire_after":"0s","remember":"24h","dead_max":50,"max_pending":1000,"in_flight":2},"revision":"2"}\n`},
	{args: `queue set mail --rate 0.5 --revision 1`, code: exitConflict, stderr: `tarry: configure mail: changed meanwhile \(.*revision 2.*\)\n`},
	{args: `queue set mail --rate 0.5 --revision 2`, stdout: `.*\nrate  0.5  .*\nrevision  3  .*\n`},
	{args: `queue get mail`, stdout: `SETTING .*\nrate  0.5  .*\nrevision  3  .*\n`},
	{args: `queues`, stdout: `QUEUE .*\nmail  0  0  0  0  0  0  -  -  -\n`},
	{args: `push mail x --key k`, stdout: `created .*\n`},
	{args: `get mail k`, stdout: `.*\nattempt  0 of 5\npriority  0\nttr  30s\nremembered for  24h\nbackoff  1s, 2m\n.*`},
	{args: `cancel mail k`, stdout: `cancelled .*`},
	{args: `get mail k`, stdout: `id  \d+\nqueue  mail\nkey  k\nstate  finished\ndue  TIME \(AWAY\)\ncancelled  TIME \(AWAY\)\nforgotten  TIME \(AWAY\)\n`},
	{args: `get mail k --json`, stdout: `{"id":"\d+","queue":"mail","key":"k","state":"finished","due":"TIME","ending":"cancelled","ended":"TIME","forgotten":"TIME"}\n`},
	{args: `get mail k --raw`, code: exitNotFound, stderr: `tarry: get mail key "k": not found \(it was cancelled at TIME, and its body has gone with it\)\n`},
	{args: `push mail x --key k`, code: exitConflict, stderr: `tarry: push .*id N held it and was cancelled at TIME, which is remembered; --on-conflict replace begins anew\)\n`},
	{args: `push mail x --key k --on-conflict keep`, stdout: `kept mail id N key k, due TIME \(AWAY\), cancelled TIME \(AWAY\)\n`},
	{args: `push mail x --key k --on-conflict keep --json`, stdout: `{"outcome":"kept",.*"state":"finished","ending":"cancelled","ended":"TIME"}\n`},
	{args: `queues mail`, stdout: `QUEUE .*\nmail  0  0  0  0  0  1  -  -  -\n`},
	{args: `purge mail --finished --yes`, stdout: `purged 1 message of mail\n`},
	{args: `push mail x --key k --remember 0 --in 1h`, stdout: `created .*\n`},
	{args: `cancel mail k`, stdout: `cancelled .*`},
	{args: `get mail k`, code: exitNotFound, stderr: `tarry: get .*\n`},

	{args: `queue`, code: exitUsage, stderr: `tarry: tarry queue is missing what to do \(usage: .*\)\n`},
	{args: `queue drop`, code: exitUsage, stderr: `tarry: unknown command "drop" for tarry queue .*\n`},
	{args: `queue get`, code: exitUsage, stderr: `tarry: QUEUE is missing .*\n`},
	{args: `queue get ma!l`, code: exitUsage, stderr: `tarry: settings .*byte 3 of the queue's name.*\n`},
	{args: `queue set mail`, code: exitUsage, stderr: `tarry: nothing to change is named .*\n`},
	{args: `queue set mail --rate 0`, code: exitUsage, stderr: `tarry: --rate must be more than 0 \(tarry pause mail hands out nothing; .*\)\n`},
	{args: `queue set mail --rate NaN`, code: exitUsage, stderr: `tarry: .*the rate is NaN leases a second; allowed are .*\n`},
	{args: `queue set mail --rate -1`, code: exitUsage, stderr: `tarry: .*the rate is -1 leases a second; allowed are .*\n`},
	{args: `queue set mail --rate fast`, code: exitUsage, stderr: `tarry: invalid argument "fast" for --rate.*\n`},
	{args: `queue set mail --in-flight 0`, code: exitUsage, stderr: `tarry: --in-flight must be more than 0 \(tarry pause mail .*\n`},
	{args: `queue set mail --dead-max -1`, code: exitUsage, stderr: `tarry: .*dead_max is -1; allowed are .*\n`},
	{args: `queue set mail --dead-keep 0s`, code: exitUsage, stderr: `tarry: --dead-keep must be more than 0 \(--unset dead-keep unsets it\)\n`},
	{args: `queue set mail --unset rate --burst 3`, code: exitUsage, stderr: `tarry: .*a burst means nothing without a rate.*\n`},
	{args: `queue set mail --unset limit`, code: exitUsage, stderr: `tarry: --unset "limit" is unknown \(settings are priority, .*\n`},
	{args: `queue set mail --unset rate --rate 5`, code: exitUsage, stderr: `tarry: both --rate and --unset rate are given .*\n`},
	{args: `queue set mail --ttr 25h`, code: exitUsage, stderr: `tarry: configure .*time to run.*\n`},
	{args: `queue set mail --max-attempts 0`, code: exitUsage, stderr: `tarry: --max-attempts must be at least 1 .*\n`},
	{args: `queue set mail --rate 5 --revision=`, code: exitUsage, stderr: `tarry: --revision is empty .*\n`},
}

func TestSettingsOfQueuesOverHTTP(t *testing.T) {
	w, _ := served(t, "mem:")
	for _, s := range queueSteps {
		run1(t, w, s)
	}
}

// Each command opens the store anew: what is set lasts.
func TestSettingsOfQueuesOnAStore(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=disk:data"}}
	for _, s := range queueSteps {
		run1(t, w, s)
	}
}

// racing is a store in which somebody else writes settings, with one more dead_max each
// time, behind the first so many times that they are read.
type racing struct {
	*memengine.Engine
	left int
}

func (r *racing) Settings(ctx context.Context, queue string) (engine.Settings, string, error) {
	s, revision, err := r.Engine.Settings(ctx, queue)
	if r.left > 0 && err == nil {
		r.left--
		other := s
		other.DeadMax++
		_, err = r.Configure(ctx, queue, other, revision)
	}
	return s, revision, err
}

func init() {
	engine.Register("racing", func(_ context.Context, u *url.URL) (engine.Engine, error) {
		n, err := strconv.Atoi(u.Opaque)
		return &racing{memengine.New(nil), n}, err
	})
}

// A change that somebody else's overtakes is made upon that, once.
func TestSettingsWrittenByTwo(t *testing.T) {
	var w world
	run1(t, w, step{args: "queue set mail --rate 5 --json --store racing:1", stdout: `{"settings":{"dead_max":1,"rate":5},"revision":"2"}\n`})
	run1(t, w, step{args: "queue set mail --rate 5 --store racing:2", code: exitConflict, stderr: `tarry: configure mail: changed meanwhile .*\n`})
	run1(t, w, step{args: "queue set mail --rate 5 --revision 0 --store racing:1", code: exitConflict, stderr: `tarry: configure mail: changed meanwhile .*\n`})
}
