package main

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

const clients = 16

// entry is what the tables have of an order.
type entry struct {
	order, paid, cancelled bool
	timeout                bool // it has a message that is live,
	leased                 bool // and has been handed out
}

// tables reads both tables at once.
const tables = `SELECT coalesce(o.id, m.key), o.id IS NOT NULL, o.paid IS NOT NULL, o.cancelled IS NOT NULL, m.id IS NOT NULL, coalesce(m.attempt, 0) > 0
	FROM checkout_order o FULL JOIN (SELECT * FROM tarry.message WHERE kind <> 3) m ON m.key = o.id`

// read returns what the tables have, by id, as one statement sees it.
func read(t *testing.T, url string) map[string]entry {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), tables)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := make(map[string]entry)
	for rows.Next() {
		var id string
		var e entry
		if err := rows.Scan(&id, &e.order, &e.paid, &e.cancelled, &e.timeout, &e.leased); err != nil {
			t.Fatal(err)
		}
		found[id] = e
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// promises are what clients were answered.
type promises struct {
	mu           sync.Mutex
	placed, paid []string
}

func (p *promises) note(of *[]string, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*of = append(*of, id)
}

// check looks for what must never be.
func (p *promises) check(t *testing.T, found map[string]entry) {
	t.Helper()
	for id, e := range found {
		switch {
		case !e.order:
			t.Errorf("%s is a timeout without an order", id)
		case e.paid && e.cancelled:
			t.Errorf("order %s is both paid and cancelled", id)
		case !e.paid && !e.cancelled && !e.timeout:
			t.Errorf("order %s is without a timeout", id)
		case e.cancelled && e.timeout:
			t.Errorf("order %s is cancelled, and its timeout is still there", id)
		case e.paid && e.timeout && !e.leased: // else expire had it in hand when the order was paid
			t.Errorf("order %s is paid, and its timeout is still there", id)
		}
	}
	for _, id := range p.placed {
		if !found[id].order {
			t.Errorf("order %s, which was answered, is not there", id)
		}
	}
	for _, id := range p.paid {
		if !found[id].paid {
			t.Errorf("the payment of order %s, which was answered, is not there", id)
		}
	}
}

// TestKill9 kills the program again and again while orders are placed, paid and time out,
// and looks each time at what the tables have.
func TestKill9(t *testing.T) {
	t.Parallel()
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	url := pgtest.Shared(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := new(promises)
	for round := range rounds {
		shop := start(t, url, "30ms")
		p.custom(shop, round, rng, 20+rng.Int64N(200), func() { shop.kill(t) })
		if p.check(t, read(t, url)); t.Failed() {
			return
		}
	}
	last := start(t, url, "30ms")
	defer last.kill(t)
	for giveUp := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		left, count := 0, map[string]int{}
		found := read(t, url)
		p.check(t, found)
		for _, e := range found {
			switch {
			case e.timeout:
				left++
			case e.paid:
				count["paid"]++
			case e.cancelled:
				count["cancelled"]++
			}
		}
		if left > 0 && time.Now().Before(giveUp) {
			continue
		}
		t.Logf("%d orders and %d payments were answered; in the end %v", len(p.placed), len(p.paid), count)
		if left > 0 || count["paid"] == 0 || count["cancelled"] == 0 {
			t.Errorf("%d timeouts are left", left)
		}
		return
	}
}

// custom has clients place orders, and pay some of them when they are about to time out,
// until so many answers have come and end has been called.
func (p *promises) custom(shop *program, round int, rng *rand.Rand, answers int64, end func()) {
	var all sync.WaitGroup
	var answered atomic.Int64
	enough := make(chan struct{})
	answer := func() {
		if answered.Add(1) == answers {
			close(enough)
		}
	}
	for c := range clients {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 0))
		all.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d-%d", round, c, n)
				if shop.post("/orders/"+id) != http.StatusCreated {
					return // it is gone
				}
				p.note(&p.placed, id)
				answer()
				if rng.IntN(3) == 0 {
					continue
				}
				time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
				switch shop.post("/orders/" + id + "/payment") {
				case http.StatusNoContent:
					p.note(&p.paid, id)
				case 0:
					return
				}
				answer()
			}
		})
	}
	<-enough
	end()
	all.Wait()
}
