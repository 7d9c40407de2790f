package from

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	client "github.com/beanstalkd/go-beanstalk"

	"github.com/tarryhq/tarry/internal/nettest"
)

func TestFromBeanstalkd(t *testing.T) {
	program, err := exec.LookPath("beanstalkd")
	check(t, err)
	port := strconv.Itoa(nettest.FreePort(t))
	old := exec.Command(program, "-l", "127.0.0.1", "-p", port)
	check(t, old.Start())
	defer func() {
		_ = old.Process.Kill()
		_ = old.Wait()
	}()
	t.Setenv("BEANSTALKD", fmt.Sprint(old.Process.Pid))
	p := follow(t, "beanstalkd.md", "127.0.0.1:11300", "127.0.0.1:"+port)
	p.await("beanstalkd to listen", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	from := dial(t, "127.0.0.1:"+port)
	_, err = from.Put([]byte("delayed"), 1, time.Second, time.Minute)
	check(t, err)
	_, err = from.Put([]byte("ready"), 1, 0, time.Minute)
	check(t, err)

	p.run()
	to := dial(t, p.addr)
	jobs := make(chan string, 10)
	for _, c := range []*client.Conn{dial(t, "127.0.0.1:"+port), dial(t, p.addr)} {
		go func() {
			for {
				id, body, err := c.Reserve(patience)
				if err != nil {
					return // the server has ended
				}
				if err := c.Delete(id); err != nil {
					t.Error(err)
				}
				jobs <- string(body)
			}
		}()
	}
	_, err = to.Put([]byte("new"), 1, 100*time.Millisecond, time.Minute)
	check(t, err)
	drain := p.steps[0]
	p.run()
	p.await("beanstalkd to drain", func() bool {
		_, err := from.Put([]byte("late"), 1<<31, time.Hour, time.Minute)
		return errors.Is(err, client.ErrDraining)
	})
	var got []string
	for range 3 {
		got = append(got, <-jobs)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"delayed", "new", "ready"}) {
		t.Errorf("workers got %q after %s", got, drain)
	}
	out := p.run()
	if counts := regexp.MustCompile(`(?m)^current-jobs-(ready|reserved|buried): 0`).FindAllString(out, -1); len(counts) != 3 {
		t.Errorf("beanstalkd still has %s", out)
	}
	p.done()
}

func dial(t *testing.T, addr string) *client.Conn {
	t.Helper()
	c, err := client.Dial("tcp", addr)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
