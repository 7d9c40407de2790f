package sqltest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
)

// killedAt is the variable with the database's URL for the process to be killed.
const killedAt = "TARRY_TEST_KILLED_AT"

// Killed kills processes in a transaction that writes a row, pushes a message and acks another.
// In the end, each transaction has taken effect as a whole or not at all. open opens a store
// in a database.
func Killed(t *testing.T, database func() string, open func(t *testing.T, url string) Callers) {
	if url := os.Getenv(killedAt); url != "" {
		placeOrders(t, open(t, url))
		return
	}
	const rounds, most = 6, 4
	url, seed := database(), rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := open(t, url)
	s.Exec(t, "CREATE TABLE placed (id VARCHAR(20) PRIMARY KEY)")
	for id := range rounds * most {
		_, err := s.Client.Push(t.Context(), "orders", nil, tarry.Key(fmt.Sprint(id)))
		ok(t, err)
	}
	var committed []string
	for round := range rounds {
		done := killed(t, url, 1+rng.IntN(most), round%2 == 0)
		committed = append(committed, done...)
	}
	for _, id := range committed {
		if !placed(t, s, id) {
			t.Errorf("%s is not there though it was committed", id)
		}
	}
	n := 0
	for id := range rounds * most {
		if placed(t, s, fmt.Sprint(id)) {
			n++
		}
	}
	t.Logf("%d transactions were known to be committed, %d were", len(committed), n)
	if n > len(committed)+rounds/2 {
		t.Error("some were committed though their process was killed before")
	}
}

// killed kills a process in its nth transaction, before or during the commit, and returns the
// ids that were certainly committed.
func killed(t *testing.T, url string, nth int, before bool) (committed []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), killedAt+"="+url)
	in, err := cmd.StdinPipe()
	ok(t, err)
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	lines := bufio.NewScanner(out)
	for i := range nth {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), "in ") {
			rest, _ := io.ReadAll(out)
			t.Fatalf("the process ended: %s\n%s", lines.Text(), rest)
		}
		if i == nth-1 && before {
			return committed
		}
		_, err := fmt.Fprintln(in)
		ok(t, err)
		if i < nth-1 { // else it may be killed first
			committed = append(committed, strings.TrimPrefix(lines.Text(), "in "))
		}
	}
	return committed
}

// placeOrders runs transactions, and commits each when it is told to.
func placeOrders(t *testing.T, s Callers) {
	in := bufio.NewReader(os.Stdin)
	for {
		got, err := s.Client.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"orders"}, Max: 1, Wait: time.Minute})
		ok(t, err)
		m := got.Messages[0]
		tx := s.Begin(t)
		tx.Exec(t, "INSERT INTO placed VALUES ('"+m.Key+"')")
		pushOrder(t, tx.InTx(t), "timeout "+m.Key)
		settled, err := tx.InTx(t).Settle(t.Context(), []tarry.Settlement{{Token: m.Token, Do: tarry.DoAck}})
		ok(t, err)
		ok(t, settled[0].Err)
		fmt.Println("in", m.Key)
		_, err = in.ReadString('\n')
		ok(t, err)
		ok(t, tx.Commit())
	}
}

// placed reports whether a transaction has taken effect, as a whole. It waits while the commit
// is running.
func placed(t *testing.T, s Callers, id string) bool {
	t.Helper()
	for ctx := patience(t); ; time.Sleep(10 * time.Millisecond) {
		row, timeout, left := s.Count(t, "SELECT COUNT(*) FROM placed WHERE id = '"+id+"'") == 1, Has(t, s.Client, "timeout "+id), Has(t, s.Client, id)
		if row == timeout && row != left {
			return row
		}
		if ctx.Err() != nil {
			t.Fatalf("of transaction %s there is a row: %v, a timeout: %v, the message that it acked: %v", id, row, timeout, left)
		}
	}
}
