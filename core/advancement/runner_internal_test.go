package advancement

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/batch"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/core/telemetry"
	"github.com/attune-go/attune/lab/testkit"
)

// losing are batches that lose against others so many times.
type losing struct {
	mu     sync.Mutex
	left   int
	broken []string
	orders []int64
	done   chan struct{}
}

func (l *losing) Run(_ context.Context, steps ...scheduler.Step) (scheduler.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	step, ok := steps[0].(*Step)
	if !ok || len(steps) != 1 {
		return scheduler.Result{}, errors.New("these are not the steps of an advancement")
	}
	for _, request := range step.requests {
		l.orders = append(l.orders, request.Workflow)
		if request.Broken != "" {
			l.broken = append(l.broken, request.Broken)
		}
	}
	if l.left--; l.left >= 0 {
		return scheduler.Result{}, scheduler.ErrConflict
	}
	close(l.done)
	return scheduler.Result{}, nil
}

// A replica that is slower than the others loses against them on a large workflow, again and again. The workflow
// does not end for that.
func TestAWorkflowThatOthersAdvanceIsNotGivenUp(t *testing.T) {
	t.Parallel()
	batches := &losing{left: 2 * maxFailures, done: make(chan struct{})}
	classify := func(_ error, tries int) batch.Verdict {
		if tries > 1 {
			return batch.Suspect
		}
		return batch.Again
	}
	r := NewRunner(Config{}, batches, classify, func(context.Context, scheduler.Result) {}, telemetry.Discard(), nil)
	require.NoError(t, r.Start(t.Context()))
	defer r.Stop()
	r.Recheck(7)
	select {
	case <-batches.done:
	case <-time.After(30 * time.Second):
		require.Fail(t, "it is not tried again")
	}
	batches.mu.Lock()
	defer batches.mu.Unlock()
	require.Empty(t, batches.broken)
	require.Len(t, batches.orders, 2*maxFailures+1)
}

// defective are batches in which one workflow comes on a defect, and not when it is
// only ended.
type defective struct {
	mu    sync.Mutex
	did   []int64
	ended chan Request
}

func (d *defective) Run(_ context.Context, steps ...scheduler.Step) (scheduler.Result, error) {
	step, ok := steps[0].(*Step)
	if !ok {
		return scheduler.Result{}, errors.New("these are not the steps of an advancement")
	}
	for _, request := range step.requests {
		if request.Workflow == 7 && request.Broken == "" {
			panic("no such thing")
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, request := range step.requests {
		if d.did = append(d.did, request.Workflow); request.Broken != "" {
			d.ended <- request
		}
	}
	return scheduler.Result{}, nil
}

// A defect ends the workflow in which it occurs, and neither the others nor the replica.
func TestADefectEndsOneWorkflow(t *testing.T) {
	t.Parallel()
	batches := &defective{ended: make(chan Request, 1)}
	r := NewRunner(Config{}, batches, func(error, int) batch.Verdict { return batch.Suspect },
		func(context.Context, scheduler.Result) {}, telemetry.Discard(), nil)
	r.Recheck(6, 7, 8)
	require.NoError(t, r.Start(t.Context()))
	defer r.Stop()
	select {
	case request := <-batches.ended:
		require.EqualValues(t, 7, request.Workflow)
		require.Equal(t, "a defect of the engine: no such thing", request.Broken)
	case <-time.After(30 * time.Second):
		require.Fail(t, "it is not ended")
	}
	testkit.Eventually(t, func() bool {
		batches.mu.Lock()
		defer batches.mu.Unlock()
		return len(batches.did) == 3
	}, 10*time.Second, "the others go on")
}

// poisonous are batches that reach their deadline whenever they contain workflow 7, unless
// it is only ended.
type poisonous struct {
	mu      sync.Mutex
	alone   int           // batches of workflow 7 alone
	blocks  chan struct{} // closed when such a batch may end
	begun   chan struct{} // receives when such a batch has begun
	done    map[int64]bool
	endedAs string
}

func (p *poisonous) Run(_ context.Context, steps ...scheduler.Step) (scheduler.Result, error) {
	step, ok := steps[0].(*Step)
	if !ok {
		return scheduler.Result{}, errors.New("these are not the steps of an advancement")
	}
	poison := slices.ContainsFunc(step.requests, func(o Request) bool { return o.Workflow == 7 && o.Broken == "" })
	if poison && len(step.requests) == 1 {
		p.mu.Lock()
		p.alone++
		second := p.alone == 2
		p.mu.Unlock()
		if second { // the first came from the batch with the others
			p.begun <- struct{}{}
			<-p.blocks
		}
	}
	if poison {
		return scheduler.Result{}, context.DeadlineExceeded
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, request := range step.requests {
		p.done[request.Workflow] = true
		if request.Workflow == 7 {
			p.endedAs = request.Broken
		}
	}
	return scheduler.Result{}, nil
}

func (p *poisonous) did(workflows ...int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !slices.ContainsFunc(workflows, func(w int64) bool { return !p.done[w] })
}

// A workflow that cannot be decided within the deadline fails after three times. While it
// is tried, the others are advanced.
func TestAWorkflowThatTakesTooLongFailsAndDelaysNoOther(t *testing.T) {
	t.Parallel()
	batches := &poisonous{blocks: make(chan struct{}), begun: make(chan struct{}, 1), done: map[int64]bool{}}
	r := NewRunner(Config{}, batches, func(error, int) batch.Verdict { return batch.Slow },
		func(context.Context, scheduler.Result) {}, telemetry.Discard(), nil)
	r.Recheck(6, 7, 8)
	require.NoError(t, r.Start(t.Context()))
	defer r.Stop()
	select {
	case <-batches.begun: // a batch of the poisonous workflow runs until the test ends it
	case <-time.After(30 * time.Second):
		require.Fail(t, "it is not tried again")
	}
	r.Recheck(9, 10)
	testkit.Eventually(t, func() bool { return batches.did(6, 8, 9, 10) }, 20*time.Second, "the others are advanced")
	require.False(t, batches.did(7))
	close(batches.blocks)
	testkit.Eventually(t, func() bool { return batches.did(7) }, 20*time.Second, "it is ended")
	batches.mu.Lock()
	defer batches.mu.Unlock()
	require.Equal(t, 3, batches.alone)
	require.Contains(t, batches.endedAs, "deadline")
}
