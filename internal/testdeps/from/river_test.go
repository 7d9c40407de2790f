package from

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/pgengine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

type ReminderArgs struct {
	Order string `json:"order"`
	To    string `json:"to"`
}

func (ReminderArgs) Kind() string { return "reminder" }

func riverPush(ctx context.Context, client *river.Client[pgx.Tx], tx pgx.Tx) (int64, error) {
	inserted, err := client.InsertTx(ctx, tx, ReminderArgs{Order: "42", To: "ann"},
		&river.InsertOpts{ScheduledAt: time.Now().Add(48 * time.Hour)})
	if err != nil {
		return 0, err
	}
	return inserted.Job.ID, nil
}

func riverPushAndCancel(ctx context.Context, client *river.Client[pgx.Tx], tx pgx.Tx) error {
	inserted, err := client.InsertTx(ctx, tx, ReminderArgs{Order: "43"}, &river.InsertOpts{ScheduledAt: time.Now().Add(48 * time.Hour)})
	if err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}

	_, err = client.JobCancel(ctx, inserted.Job.ID)
	return err
}

type ReminderWorker struct {
	river.WorkerDefaults[ReminderArgs]
}

func (w *ReminderWorker) Work(ctx context.Context, job *river.Job[ReminderArgs]) error {
	return send(ctx, Mail{To: job.Args.To})
}

var Due = tarry.NewTopic[Mail]("reminder")

func dueInTx(ctx context.Context, c *tarry.Client, tx pgx.Tx) error {
	in, err := pgengine.InTx(c, tx)
	if err != nil {
		return err
	}

	_, err = Due.Push(ctx, in, Mail{To: "ann"}, tarry.In(48*time.Hour), tarry.Key("42"))
	return err
}

func cancelDue(ctx context.Context, c *tarry.Client) (err error) {
	err = Due.Cancel(ctx, c, tarry.ByKey("42"))
	return err
}

func handleDue(w *tarry.Worker) {
	tarry.Handle(w, Due, func(ctx context.Context, m *tarry.Message[Mail]) error {
		return send(ctx, m.Body)
	})
}

func TestFromRiver(t *testing.T) {
	url := pgtest.Shared(t)
	pool := pgtest.Pool(t, url)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	check(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	check(t, err)
	workers := river.NewWorkers()
	river.AddWorker(workers, new(ReminderWorker))
	client, err := river.NewClient(driver, &river.Config{Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}})
	check(t, err)
	done, stop := client.Subscribe(river.EventKindJobCompleted)
	defer stop()
	check(t, client.Start(t.Context()))
	defer func() { check(t, client.Stop(context.WithoutCancel(t.Context()))) }()

	tx, err := pool.Begin(t.Context())
	check(t, err)
	id, err := riverPush(t.Context(), client, tx)
	check(t, err)
	check(t, tx.Commit(t.Context()))
	tx, err = pool.Begin(t.Context())
	check(t, err)
	check(t, riverPushAndCancel(t.Context(), client, tx))
	_, err = client.Insert(t.Context(), ReminderArgs{Order: "soon"}, &river.InsertOpts{ScheduledAt: time.Now().Add(55 * time.Second)})
	check(t, err)
	_, err = client.Insert(t.Context(), ReminderArgs{Order: "now"}, nil)
	check(t, err)
	if e := <-done; !strings.Contains(string(e.Job.EncodedArgs), `"now"`) {
		t.Errorf("River's worker got %s", e.Job.EncodedArgs)
	}

	p := follow(t, "river.md", "postgres://app@127.0.0.1:5432/shop", url, "psql shop", "psql '"+url+"'")
	p.compiled("river_test.go")
	p.run()
	if out := p.run(); !strings.Contains(out, "river_job  1       0     0        0     1") {
		t.Errorf("the move says %s", out)
	}
	if out := p.run(); !strings.HasPrefix(out, "1\n") || !strings.Contains(out, " 42 ") {
		t.Errorf("in the end there are %s", out)
	}
	p.done()
	if _, err := client.JobGet(t.Context(), id); err == nil {
		t.Error("River still has the job")
	}
	c := p.client()
	p.has(c, "reminder", "42")
	if body := p.handled(c, Due, "42"); body.To != "ann" {
		t.Errorf("a worker got %+v", body)
	}
	handleDue(tarry.NewWorker(c, nil))

	store, err := tarry.Open(t.Context(), url+"&migrate=true", nil)
	check(t, err)
	defer store.Close()
	tx, err = pool.Begin(t.Context())
	check(t, err)
	check(t, dueInTx(t.Context(), store, tx))
	check(t, tx.Commit(t.Context()))
	check(t, cancelDue(t.Context(), store))
}
