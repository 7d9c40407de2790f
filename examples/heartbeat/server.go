package main

import (
	"bufio"
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tarryhq/tarry"
)

// Silent is the queue of connections to close. A body is a connection's name.
var Silent = tarry.NewTopic[string]("connection.silent")

// A server closes the connections that are silent for too long.
type server struct {
	c       *tarry.Client
	silence time.Duration

	mu    sync.Mutex
	last  int
	conns map[string]net.Conn
}

func newServer(c *tarry.Client, silence time.Duration) *server {
	return &server{c: c, silence: silence, conns: make(map[string]net.Conn)}
}

// serve accepts connections until ctx ends, and then closes all of them.
func (s *server) serve(ctx context.Context, ln net.Listener) error {
	tasks, ctx := errgroup.WithContext(ctx)
	defer ln.Close()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	w := tarry.NewWorker(s.c, nil)
	tarry.Handle(w, Silent, func(_ context.Context, m *tarry.Message[string]) error {
		s.close(m.Body)
		return nil
	})
	tasks.Go(func() error { return w.Run(ctx) })
	tasks.Go(func() error {
		for {
			conn, err := ln.Accept()
			switch {
			case err != nil && ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			}
			tasks.Go(func() error {
				s.listen(ctx, conn)
				return nil
			})
		}
	})
	return tasks.Wait()
}

// listen takes each line as a heartbeat, until the connection or ctx ends.
func (s *server) listen(ctx context.Context, conn net.Conn) {
	name := s.add(conn)
	defer s.disconnect(ctx, name)
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	lines := bufio.NewScanner(conn)
	for s.beat(ctx, name) && lines.Scan() { // the first beat covers a connection that never sends a line
	}
}

// beat rearms the connection's message, or pushes it. It returns false if it came too late,
// because the connection is being closed.
func (s *server) beat(ctx context.Context, name string) bool {
	_, err := Silent.Rearm(ctx, s.c, name, tarry.In(s.silence), name)
	return err == nil
}

// disconnect closes and forgets a connection, and cancels its message, which has nothing to
// close any more.
func (s *server) disconnect(ctx context.Context, name string) {
	s.close(name)
	_ = Silent.Cancel(ctx, s.c, tarry.ByKey(name))
}

// add gives a connection a name and keeps it.
func (s *server) add(conn net.Conn) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	name := strconv.Itoa(s.last)
	s.conns[name] = conn
	return name
}

func (s *server) close(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if conn, ok := s.conns[name]; ok {
		conn.Close()
		delete(s.conns, name)
	}
}
