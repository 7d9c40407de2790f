package calls

import (
	"sync"
	"time"
)

// Lanes are calls side by side for items that gather meanwhile. A further lane opens when
// many items wait, or when every call under way is slow: it may hang. The owner's mutex
// guards the counts.
type Lanes struct {
	Mu    *sync.Mutex
	Most  int           // lanes at a time
	Worth int           // items that open another lane
	Slow  time.Duration // how long a call may take before it is slow
	// Both are called with Mu held.
	Waiting func() int // the number of items that no call has
	Open    func()     // starts a lane; it decrements Running at its end

	Running int
	slow    int // lanes with a slow call
}

// Widen opens another lane if one is needed. Called with Mu held.
func (l *Lanes) Widen() {
	waiting := l.Waiting()
	if waiting > 0 && l.Running < l.Most && (l.Running == l.slow || waiting >= l.Worth) {
		l.Running++
		l.Open()
	}
}

// Spare reports whether another lane has a call that is not slow, and so takes the items
// that gather. Called with Mu held.
func (l *Lanes) Spare() bool { return l.Running-1 > l.slow }

// Call makes a call in a lane, and lets items overtake it once it is slow.
func (l *Lanes) Call(call func()) {
	if l.Most == 1 {
		call()
		return
	}
	slow, over := false, false
	timer := time.AfterFunc(l.Slow, func() {
		l.Mu.Lock()
		defer l.Mu.Unlock()
		if !over {
			slow = true
			l.slow++
			l.Widen()
		}
	})
	call()
	if timer.Stop() {
		return
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if over = true; slow {
		l.slow--
	}
}
