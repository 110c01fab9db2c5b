package supervise

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Group starts named services in the order they were added and stops them in
// the opposite order. The zero value is ready.
type Group struct {
	mu      sync.Mutex
	members []member
	running []member // started, in order
	started bool
	stopped chan struct{} // created by the first Stop, closed when all have stopped
	waiting string        // name of the member being stopped
}

type member struct {
	name    string
	service Service
}

// Add puts a service at the end of the order. It must not be called after Start.
func (g *Group) Add(name string, service Service) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started {
		panic(fmt.Sprintf("supervise: service %q added to a group that was already started", name))
	}
	g.members = append(g.members, member{name, service})
}

// Names returns the names in starting order.
func (g *Group) Names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := make([]string, len(g.members))
	for i, m := range g.members {
		names[i] = m.name
	}
	return names
}

// Start starts every service. If one fails, the started ones are stopped again, last first, and the
// error names the failed one. A group is started once. A Stop during Start waits for it; cancel the
// context of Start to abort it.
func (g *Group) Start(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped != nil {
		return ErrStopped
	}
	if g.started {
		return ErrAlreadyStarted
	}
	g.started = true
	for _, m := range g.members {
		if err := m.service.Start(ctx); err != nil {
			for _, started := range slices.Backward(g.running) {
				started.service.Stop()
			}
			g.running = nil
			return fmt.Errorf("start %s: %w", m.name, err)
		}
		g.running = append(g.running, m)
	}
	return nil
}

// Stop stops the started services, last first, and waits no longer than ctx allows; the error then
// names the service that did not stop. The stopping continues in the background, and a further Stop
// waits for it again.
func (g *Group) Stop(ctx context.Context) error {
	g.mu.Lock()
	if g.stopped == nil {
		g.stopped = make(chan struct{})
		if last := len(g.running) - 1; last >= 0 {
			g.waiting = g.running[last].name
		}
		go g.stopAll(g.running, g.stopped)
	}
	stopped := g.stopped
	g.mu.Unlock()

	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == "" {
		return nil // the last one stopped in this very moment
	}
	return fmt.Errorf("stop %s: %w", g.waiting, context.Cause(ctx))
}

func (g *Group) stopAll(running []member, stopped chan struct{}) {
	defer close(stopped)
	for _, m := range slices.Backward(running) {
		g.mu.Lock()
		g.waiting = m.name
		g.mu.Unlock()
		m.service.Stop()
	}
	g.mu.Lock()
	g.waiting = ""
	g.mu.Unlock()
}
