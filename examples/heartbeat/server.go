package main

import (
	"bufio"
	"context"
	"net"
	"strconv"
	"sync"
	"time"

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

// serve accepts connections until ctx ends, and then closes all.
func (s *server) serve(ctx context.Context, ln net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		ln.Close()
		s.closeAll()
	})()

	w := tarry.NewWorker(s.c, nil)
	tarry.Handle(w, Silent, func(_ context.Context, m *tarry.Message[string]) error {
		s.close(m.Body)
		return nil
	})
	var all sync.WaitGroup
	defer all.Wait()
	worked := make(chan error, 1)
	all.Go(func() {
		worked <- w.Run(ctx)
		stop()
	})
	for {
		conn, err := ln.Accept()
		if err != nil {
			ended := ctx.Err() != nil
			stop()
			s.closeAll()
			if workErr := <-worked; workErr != nil || ended {
				return workErr
			}
			return err
		}
		name, ok := s.add(ctx, conn)
		if !ok {
			conn.Close()
			continue
		}
		all.Go(func() { s.listen(ctx, name, conn) })
	}
}

// listen takes each line as a heartbeat.
func (s *server) listen(ctx context.Context, name string, conn net.Conn) {
	defer s.gone(ctx, name)
	if !s.beat(ctx, name) { // silent from the beginning counts as well
		return
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if !s.beat(ctx, name) {
			return
		}
	}
}

// beat winds the connection's message back, or makes it. It reports false when that
// came too late, because the connection is being closed.
func (s *server) beat(ctx context.Context, name string) bool {
	_, err := Silent.Rearm(ctx, s.c, name, tarry.In(s.silence), name)
	return err == nil
}

// gone forgets a connection that has ended. Without the cancel its message would
// still come, and find nothing to close.
func (s *server) gone(ctx context.Context, name string) {
	s.close(name)
	_ = Silent.Cancel(ctx, s.c, tarry.ByKey(name))
}

// add names a connection.
func (s *server) add(ctx context.Context, conn net.Conn) (name string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return "", false
	}
	s.last++
	name = strconv.Itoa(s.last)
	s.conns[name] = conn
	return name, true
}

func (s *server) close(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if conn, ok := s.conns[name]; ok {
		conn.Close()
		delete(s.conns, name)
	}
}

func (s *server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		conn.Close()
	}
	clear(s.conns)
}
