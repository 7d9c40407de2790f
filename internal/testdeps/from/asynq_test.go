package from

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

func send(context.Context, Mail) error { return nil }

func asynqPush(client *asynq.Client) (err error) {
	payload := []byte(`{"to":"ann"}`)
	_, err = client.Enqueue(asynq.NewTask("email:reminder", payload),
		asynq.ProcessIn(48*time.Hour), asynq.TaskID("order-42"))
	return err
}

func asynqCancel(inspector *asynq.Inspector) (err error) {
	err = inspector.DeleteTask("default", "order-42")
	return err
}

func asynqWork(srv *asynq.Server) (err error) {
	mux := asynq.NewServeMux()
	mux.HandleFunc("email:reminder", func(ctx context.Context, t *asynq.Task) error {
		var m Mail
		if err := json.Unmarshal(t.Payload(), &m); err != nil {
			return fmt.Errorf("%v: %w", err, asynq.SkipRetry)
		}
		return send(ctx, m)
	})
	err = srv.Run(mux)
	return err
}

var _ = asynqWork // it runs until a signal

var Reminder = tarry.NewTopic[Mail]("email.reminder")

func afterAsynq(ctx context.Context, c *tarry.Client) (err error) {
	_, err = Reminder.Push(ctx, c, Mail{To: "ann"}, tarry.In(48*time.Hour), tarry.Key("order-42"))
	if !errors.Is(err, tarry.ErrExists) {
		return fmt.Errorf("pushed again: %w", err)
	}
	err = Reminder.Cancel(ctx, c, tarry.ByKey("order-42"))
	return err
}

func reminders(ctx context.Context, c *tarry.Client, w *tarry.Worker) {
	tarry.Handle(w, Reminder, func(ctx context.Context, m *tarry.Message[Mail]) error {
		return send(ctx, m.Body) // an error retries; tarry.Bury(err) gives up
	})
}

func TestFromAsynq(t *testing.T) {
	redis := redistest.Start(t)
	opt := asynq.RedisClientOpt{Addr: redis.Addr()}
	client, inspector := asynq.NewClient(opt), asynq.NewInspector(opt)
	defer client.Close()
	defer inspector.Close()
	check(t, asynqPush(client))
	due := time.Now().Add(time.Hour)
	enqueue := func(id, body string, opts ...asynq.Option) {
		t.Helper()
		task := asynq.NewTaskWithHeaders("email:reminder", []byte(body), map[string]string{"b": "2", "a": "1"})
		_, err := client.Enqueue(task, append(opts, asynq.TaskID(id))...)
		check(t, err)
	}
	enqueue("now", "x")
	retried(t, opt, client)
	enqueue("soon", "x", asynq.ProcessIn(30*time.Second))
	enqueue("unique", `"unique"`, asynq.ProcessAt(due), asynq.Unique(3*time.Hour), asynq.MaxRetry(4))
	enqueue("grouped", "x", asynq.ProcessAt(due), asynq.Group("g"))
	enqueue("low", "\xff", asynq.ProcessAt(due), asynq.Queue("low"), asynq.Timeout(time.Minute), asynq.Deadline(due.Add(time.Hour)), asynq.Retention(time.Hour))

	p := follow(t, "asynq.md", "127.0.0.1:6379", redis.Addr())
	p.compiled("asynq_test.go")
	p.run()
	for range 2 { // a dry run, and a move
		out, err := p.try()
		if err == nil || !strings.Contains(out, "default: grouped: it is of a group") ||
			!strings.Contains(out, "default  3       0     1        0     1") || !strings.Contains(out, "low      1 ") {
			t.Errorf("%v: %s", err, out)
		}
	}
	p.run()
	p.done()

	c := p.client()
	m, err := c.Get(t.Context(), tarry.ByKey("unique").Of("email.reminder"))
	headers := []tarry.MessageHeader{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "asynq-type", Value: "email:reminder"}}
	if err != nil || string(m.Body) != `"unique"` || m.Due.Unix() != due.Unix() || m.Policy.MaxAttempts != 5 || !slices.Equal(m.Headers, headers) {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := c.Get(t.Context(), tarry.ByKey("retried").Of("email.reminder")); err != nil || m.Policy.MaxAttempts != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := c.Get(t.Context(), tarry.ByKey("low").Of("email.reminder")); err != nil || string(m.Body) != "\xff" || m.ContentType != "application/octet-stream" {
		t.Errorf("%+v, %v", m, err)
	}
	left, err := inspector.ListScheduledTasks("default")
	if err != nil || len(left) != 2 || left[0].ID != "soon" || left[1].ID != "grouped" {
		t.Errorf("asynq still has %v, %v", left, err)
	}
	if info, err := inspector.GetQueueInfo("default"); err != nil || info.Retry != 0 || info.Pending != 1 {
		t.Errorf("asynq still has %+v, %v", info, err)
	}
	enqueue("unique", `"unique"`, asynq.ProcessAt(due), asynq.Unique(time.Hour)) // its lock has gone
	if err := asynqCancel(inspector); err == nil {
		t.Error("asynq still has what was moved")
	}
	body := p.handled(c, Reminder, "retried")
	if body.To != "bob" {
		t.Errorf("a worker got %+v", body)
	}
	check(t, afterAsynq(t.Context(), c))
	reminders(t.Context(), c, tarry.NewWorker(c, nil))
}

// retried leaves a task that has failed once of twice, and is retried in an hour.
func retried(t *testing.T, opt asynq.RedisClientOpt, client *asynq.Client) {
	t.Helper()
	_, err := client.Enqueue(asynq.NewTask("email:reminder", []byte(`{"to":"bob"}`)), asynq.TaskID("retried"), asynq.MaxRetry(2), asynq.Queue("default"))
	check(t, err)
	failed := make(chan string, 10)
	srv := asynq.NewServer(opt, asynq.Config{LogLevel: asynq.FatalLevel, RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Hour }})
	check(t, srv.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		failed <- id
		if id == "retried" {
			return errors.New("failed")
		}
		return nil
	})))
	for id := ""; id != "retried"; id = <-failed {
	}
	srv.Shutdown()
	_, err = client.Enqueue(asynq.NewTask("email:reminder", nil))
	check(t, err)
}
