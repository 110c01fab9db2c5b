package app

import (
	"context"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/queue"
)

// PlaceReader is where the views of one queue and of one worker read from.
type PlaceReader interface {
	QueueLine(ctx context.Context, ask monitor.LineAsk) (*monitor.Line, error)
	QueuesPast(ctx context.Context, id int64) (*monitor.QueuesPast, error)
	Worker(ctx context.Context, id int64) (*monitor.WorkerDetail, error)
	WorkersPast(ctx context.Context) (*monitor.WorkersPast, error)
}

const (
	// pastEvery is how often the last hour is read while a view draws it.
	pastEvery = 30 * time.Second
	// workersPastEvery is how often the last hour of workers is read, previewEvery how
	// often what is told of a queue below the list.
	workersPastEvery = time.Minute
	previewEvery     = 5 * time.Second
)

// placeEvery is how long to wait at least before a feed of these views is read again.
func (m *Model) placeEvery(feed screen.Feed) time.Duration {
	switch {
	case feed == screen.FeedPast:
		return pastEvery
	case feed == screen.FeedWorkersPast:
		return workersPastEvery
	case m.view == keymap.InQueues && (feed == screen.FeedQueue || feed == screen.FeedLine):
		return previewEvery
	default:
		return 0
	}
}

// isPast reports whether a feed is read once, and again after an outage of the database,
// because the polls of other feeds extend it. The overview and the view of dead letters draw
// the last hour as it was recorded, so there it is polled; of the workers the overview needs
// only the beginning.
func (m *Model) isPast(feed screen.Feed) bool {
	onOverview := m.view == keymap.InOverview
	drawn := onOverview || m.view == keymap.InDeadLetters
	return feed == screen.FeedPast && !drawn || feed == screen.FeedQueuesPast || feed == screen.FeedWorkersPast && onOverview
}

// readMissed reads what happened while nobody could look.
func (m *Model) readMissed() tea.Cmd {
	cmd := m.restart(screen.FeedPast)
	for _, feed := range []screen.Feed{screen.FeedQueuesPast, screen.FeedWorkersPast} {
		if slices.Contains(m.screen().Feeds(), feed) {
			cmd = tea.Batch(cmd, m.restart(feed))
		}
	}
	return cmd
}

// placeReader binds the reads of the views of one queue and of one worker.
func (m *Model) placeReader(feed screen.Feed) func(ctx context.Context) (any, error) {
	r := m.source
	switch feed {
	case screen.FeedLine:
		ask := m.shownQueue()
		return func(ctx context.Context) (any, error) { return settle(r.QueueLine(ctx, ask)) }
	case screen.FeedGlance:
		id := m.queue.Subject()
		if m.view == keymap.InExecutions {
			id = m.executions.Subject()
		}
		return func(ctx context.Context) (any, error) {
			d, err := r.Execution(ctx, id)
			return settle(&screen.Glance{ExecutionDetail: d}, err)
		}
	case screen.FeedQueuesPast:
		id := int64(0)
		if m.view == keymap.InQueue {
			id = m.queue.ID()
		}
		return func(ctx context.Context) (any, error) { return settle(r.QueuesPast(ctx, id)) }
	case screen.FeedWorkersPast:
		return func(ctx context.Context) (any, error) { return settle(r.WorkersPast(ctx)) }
	default:
		id := m.shownWorker()
		return func(ctx context.Context) (any, error) { return settle(r.Worker(ctx, id)) }
	}
}

// shownQueue is the queue that is told of, and how much of its line is wanted: of the
// one that was opened, or of the one under the cursor of the list.
func (m *Model) shownQueue() monitor.LineAsk {
	if m.view == keymap.InQueue {
		return m.queue.Ask()
	}
	return monitor.LineAsk{Queue: m.queues.Subject(), Rows: queue.PreviewRows}
}

// shownWorker is the worker that is told of: the one that was opened, or the one under
// the cursor of the list.
func (m *Model) shownWorker() int64 {
	if m.view == keymap.InWorker {
		return m.worker.ID()
	}
	return m.workerList.Subject()
}

// placeReadAt is the database's time of an answer to these views.
func placeReadAt(result any) time.Time {
	switch r := result.(type) {
	case *monitor.Line:
		return r.At
	case *monitor.QueuesPast:
		return r.At
	case *monitor.WorkersPast:
		return r.At
	case *monitor.WorkerDetail:
		return r.At
	case *screen.Glance:
		if r.ExecutionDetail != nil {
			return r.At
		}
	}
	return time.Time{}
}
