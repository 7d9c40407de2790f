//go:build linux

package rawhttp

import (
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The variables that make this program a trivial server.
const (
	envListen = "TARRY_RAWHTTP_LISTEN" // the address
	envWait   = "TARRY_RAWHTTP_WAIT"   // how long it sleeps for each request; "": it appends to a log
	envLog    = "TARRY_RAWHTTP_LOG"    // the log's file
)

func TestMain(m *testing.M) {
	if address := os.Getenv(envListen); address != "" {
		runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0)) // as tarry serve
		floor := make([]byte, 16<<20)
		err := serveTrivial(address)
		runtime.KeepAlive(floor)
		panic(err)
	}
	code := m.Run()
	leave()
	os.Exit(code)
}

const trivialAnswer = `{"outcome":"created","id":"123456","queue":"orders","key":"order-123456","due":"2030-03-01T12:30:00.000Z","state":"scheduled"}`

// serveTrivial answers every request alike: it reads the body, waits, and writes.
func serveTrivial(address string) error {
	wait := func([]byte) error { return nil }
	if text := os.Getenv(envWait); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		wait = func([]byte) error { time.Sleep(d); return nil }
	} else if file := os.Getenv(envLog); file != "" {
		l, err := openLog(file)
		if err != nil {
			return err
		}
		wait = l.append
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	bodies := sync.Pool{New: func() any { return new([4096]byte) }}
	return http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		room := bodies.Get().(*[4096]byte)
		defer bodies.Put(room)
		n, err := io.ReadFull(r.Body, room[:])
		if err == nil || wait(room[:n]) != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(trivialAnswer)))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, trivialAnswer)
	}))
}

// bareLog is the least code that makes records durable: it appends to one file that was written
// before, and all who wait share a sync.
type bareLog struct {
	file *os.File
	wake chan struct{}
	mu   sync.Mutex
	buf  []byte
	next *flush
}

type flush struct {
	done chan struct{}
	err  error
}

const logSize = 64 << 20

func openLog(path string) (*bareLog, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(make([]byte, logSize)); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	l := &bareLog{file: f, wake: make(chan struct{}, 1), next: &flush{done: make(chan struct{})}}
	go l.run()
	return l, nil
}

func (l *bareLog) run() {
	var spare []byte
	at := int64(0)
	for range l.wake {
		l.mu.Lock()
		buf, f := l.buf, l.next
		l.buf, l.next = spare[:0], &flush{done: make(chan struct{})}
		l.mu.Unlock()
		if at+int64(len(buf)) > logSize {
			at = 0
		}
		if _, f.err = l.file.WriteAt(buf, at); f.err == nil {
			f.err = syscall.Fdatasync(int(l.file.Fd()))
		}
		at, spare = at+int64(len(buf)), buf
		close(f.done)
	}
}

// append waits until a record is durable.
func (l *bareLog) append(record []byte) error {
	l.mu.Lock()
	l.buf = append(l.buf, record...)
	f := l.next
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	<-f.done
	return f.err
}
