package advancement

import (
	"slices"
	"sync"
	"time"

	"github.com/attune-go/attune/core/batch"
)

const (
	// maxRequests bounds the workflows of one batch.
	maxRequests = 64
	// maxFailures bounds how often a workflow may fail alone, and maxSlow how often it may exceed
	// the timeout of a batch, before it is ended.
	maxFailures, maxSlow = 6, 3
	// stuckPause is the pause for a workflow that cannot even be ended.
	stuckPause = 5 * time.Minute
	// maxFailing bounds the remembered failing workflows.
	maxFailing = 10_000
)

// key identifies the subject of a request.
type key struct{ start, workflow int64 }

func keyOf(request Request) key { return key{start: request.Start, workflow: request.Workflow} }

// queue has the waiting orders, each workflow once, in order of arrival. Failing workflows wait for their retry and run
// alone, so that they delay no others. It is safe for concurrent use.
type queue struct {
	wake, wakeFailing chan struct{}

	mu       sync.Mutex
	requests map[key]*Request
	keys     []key
	failing  map[key]*failing
}

// failing is the record of a workflow that failed alone.
type failing struct {
	failures, slow, held int
	broken               string // the reason for ending it
	stuck                bool   // it could not be ended
	next                 time.Time
}

func newQueue() *queue {
	return &queue{
		wake: make(chan struct{}, 1), wakeFailing: make(chan struct{}, 1), requests: map[key]*Request{},
		failing: map[key]*failing{},
	}
}

// add appends a request, or merges it into the one for the same workflow.
func (l *queue) add(request Request) {
	l.mu.Lock()
	k := keyOf(request)
	if known := l.requests[k]; known != nil {
		known.Children = append(known.Children, request.Children...)
	} else {
		l.requests[k] = &request
		l.keys = append(l.keys, k)
	}
	l.mu.Unlock()
	for _, wake := range []chan struct{}{l.wake, l.wakeFailing} {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// dequeue removes the next requests of workflows that are not failing.
func (l *queue) dequeue() (taken []Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = slices.DeleteFunc(l.keys, func(k key) bool {
		if len(taken) == maxRequests || l.failing[k] != nil {
			return false
		}
		taken = append(taken, *l.requests[k])
		delete(l.requests, k)
		return true
	})
	return taken
}

// dequeueFailing removes the next request of a failing workflow that is due. If there is none, again is
// the delay until the next one.
func (l *queue) dequeueFailing(now time.Time) (taken []Request, again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	again = time.Hour
	for i, k := range l.keys {
		t := l.failing[k]
		switch {
		case t == nil:
		case t.next.After(now):
			again = min(again, t.next.Sub(now))
		default:
			request := *l.requests[k]
			request.Broken = t.broken
			delete(l.requests, k)
			l.keys = slices.Delete(l.keys, i, i+1)
			return []Request{request}, 0
		}
	}
	return nil, again
}

// done forgets the failures of advanced workflows.
func (l *queue) done(requests []Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, request := range requests {
		delete(l.failing, keyOf(request))
	}
}

// postpone schedules a retry of a request and returns the pause: none for a request to end now,
// stuckPause for one that could not be ended either.
func (l *queue) postpone(request Request, verdict batch.Verdict, cause error, now time.Time) time.Duration {
	l.mu.Lock()
	k := keyOf(request)
	t := l.failing[k]
	if t == nil {
		if len(l.failing) >= maxFailing {
			clear(l.failing)
		}
		t = &failing{}
		l.failing[k] = t
	}
	pause := t.record(verdict, cause)
	t.next = now.Add(pause)
	l.mu.Unlock()
	request.Broken = ""
	l.add(request)
	return pause
}

// record counts one more failure and returns the pause.
func (t *failing) record(verdict batch.Verdict, cause error) time.Duration {
	n := 0
	switch verdict {
	case batch.Slow:
		t.slow++
		n = t.slow + 3
	case batch.Suspect:
		t.failures++
		n = t.failures
	case batch.Blocked, batch.Again:
		t.held++
		return min(pauseLeast<<min(t.held-1, 6), pauseMost)
	}
	switch {
	case t.broken != "":
		t.stuck = true
		return stuckPause
	case t.failures > maxFailures || t.slow >= maxSlow:
		t.broken = cause.Error()
		return 0
	}
	return min(pauseLeast<<min(n-1, 10), time.Minute)
}

// stuck counts the workflows that can be neither advanced nor ended.
func (l *queue) stuck() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, t := range l.failing {
		if t.stuck {
			n++
		}
	}
	return n
}

// len is the number of workflows with requests.
func (l *queue) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.keys)
}
