package rabbit

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
)

func TestWritesDoNotWaitAndGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := &conn{Conn: near}
		var want strings.Builder
		write := func(text string) {
			want.WriteString(text)
			if n, err := io.WriteString(c, text); n != len(text) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
		write("first ")
		synctest.Wait()
		for i := range 1000 {
			write(fmt.Sprintln(i))
		}
		var got strings.Builder
		for b := make([]byte, 1<<20); got.Len() < want.Len(); {
			n, err := far.Read(b) // of one write
			if err != nil {
				t.Fatal(err)
			}
			got.Write(b[:n])
			if first := got.String() == "first "; !first && got.Len() < want.Len() {
				t.Errorf("the second write has %d bytes", n)
			}
		}
		if got.String() != want.String() {
			t.Errorf("got %q", got.String())
		}
		_ = far.Close()
		write("lost")
		synctest.Wait()
		if _, err := io.WriteString(c, "x"); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("after a write failed: %v", err)
		}
	})
}
