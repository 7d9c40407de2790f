package ui

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"
)

// session is a viewer who has logged in.
type session struct {
	token string
	ctx   context.Context // ends with the session, at its greatest age at the latest, and ends its requests
	end   context.CancelFunc

	used time.Time // guarded by sessions.mu, like the fields below
	open int       // requests in progress
}

// sessions are the sessions of a Handler, by the hash of their cookies, so that a dump of
// the memory lets nobody in. Safe for concurrent use.
type sessions struct {
	maxIdle, maxAge time.Duration
	maxCount        int

	mu  sync.Mutex
	all map[[sha256.Size]byte]*session
}

func newSessions(cfg *Config) *sessions {
	return &sessions{maxIdle: cfg.SessionIdle, maxAge: cfg.SessionMax, maxCount: cfg.MaxSessions, all: make(map[[sha256.Size]byte]*session)}
}

// begin adds a session for a token and returns the value of its cookie.
func (s *sessions) begin(token string) string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	secret := base64.RawURLEncoding.EncodeToString(b[:])
	o := &session{token: token, used: time.Now()}
	o.ctx, o.end = context.WithTimeout(context.Background(), s.maxAge)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(token)
	s.all[sha256.Sum256([]byte(secret))] = o
	return secret
}

// sweep ends the sessions that are over, and one more if there is no room for another of
// token. Called with s.mu held.
func (s *sessions) sweep(token string) {
	for hash, o := range s.all {
		if s.over(o) {
			o.end()
			delete(s.all, hash)
		}
	}
	if len(s.all) >= s.maxCount {
		s.evict(token)
	}
}

// evict ends the least recently used session of the token that has the most, counting one more
// for token. So logging in again and again logs out nobody else. Called with s.mu held.
func (s *sessions) evict(token string) {
	count := map[string]int{token: 1}
	for _, o := range s.all {
		count[o.token]++
	}
	var victim *session
	var victimHash [sha256.Size]byte
	for hash, o := range s.all {
		if victim == nil || count[o.token] > count[victim.token] || count[o.token] == count[victim.token] && o.used.Before(victim.used) {
			victim, victimHash = o, hash
		}
	}
	victim.end()
	delete(s.all, victimHash)
}

// over reports whether a session has ended. Called with s.mu held.
func (s *sessions) over(o *session) bool {
	return o.ctx.Err() != nil || o.open == 0 && time.Since(o.used) >= s.maxIdle
}

// enter returns the session of a cookie for one request, which calls leave at its end. It
// returns nil if there is no such session.
func (s *sessions) enter(secret string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.all[sha256.Sum256([]byte(secret))]
	if o == nil || s.over(o) {
		return nil
	}
	o.used = time.Now()
	o.open++
	return o
}

func (s *sessions) leave(o *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.used = time.Now()
	o.open--
}

// finish ends the session of a cookie and its requests.
func (s *sessions) finish(secret string) {
	hash := sha256.Sum256([]byte(secret))
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.all[hash]; o != nil {
		o.end()
		delete(s.all, hash)
	}
}
