package api

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// reloaded is a value that is read from files, and read again when they change. If they cannot be used, the last
// value stays in force.
type reloaded[V any] struct {
	files  []string
	read   func() (V, error)
	every  time.Duration                                 // between two checks of the files
	report func(ctx context.Context, value V, err error) // of each change

	mu      sync.Mutex
	value   V // guarded by mu, like the rest
	state   string
	err     error // of the last read
	checked time.Time
}

// load reads the files for the first time.
func (r *reloaded[V]) load() (err error) {
	r.state, r.checked = r.stat(), time.Now()
	r.value, err = r.read()
	return err
}

func (r *reloaded[V]) get(ctx context.Context) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.checked) < r.every {
		return r.value
	}
	r.checked = time.Now()
	state := r.stat()
	if state == r.state && r.err == nil {
		return r.value
	}
	value, err := r.read()
	if err == nil {
		r.value = value
	}
	if state != r.state || err == nil {
		r.report(ctx, value, err)
	}
	r.state, r.err = state, err
	return r.value
}

// stat distinguishes states of the files.
func (r *reloaded[V]) stat() (state string) {
	for _, name := range r.files {
		info, err := os.Stat(name)
		if err != nil {
			return err.Error()
		}
		state += fmt.Sprintf("%d %d %s ", info.Size(), info.ModTime().UnixNano(), info.Mode())
	}
	return state
}
