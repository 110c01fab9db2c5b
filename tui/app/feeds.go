package app

import (
	"context"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/queue"
)

// Feed is one chain of polls.
type Feed[T any] struct {
	Name screen.Feed
	// Read binds the read to the present state of the views. The returned function runs outside of Update.
	Read func(m *Model) func(ctx context.Context) (*T, error)
	// Put stores the answer; now is the time of the database, as far as known.
	Put func(d *screen.Data, answer *T, now time.Time)
	// Every is the shortest interval between reads; nil means that of the dashboard.
	Every func(m *Model) time.Duration
	// Always polls the feed in every view; nil means never.
	Always func(m *Model) bool
	// Once reads the feed once, and again after an outage of the database: other feeds extend it. Nil means never.
	Once func(m *Model) bool
	// Nudged reads the feed sooner after a change of executions or workflows.
	Nudged bool
	// Source is the server that is read; empty means the database. Only reads of the database tell its time. Probed
	// feeds check their source while the screen is frozen.
	Source string
	Probed bool
}

// feed is a Feed of any type.
type feed struct {
	name   screen.Feed
	read   func(m *Model) func(ctx context.Context) (any, error)
	put    func(d *screen.Data, answer any, now time.Time)
	every  func(m *Model) time.Duration
	always func(m *Model) bool
	once   func(m *Model) bool
	nudged bool
	source string
	probed bool
}

func of[T any](f Feed[T]) *feed {
	never := func(*Model) bool { return false }
	typed := &feed{
		name: f.Name, every: f.Every, always: f.Always, once: f.Once, nudged: f.Nudged, source: f.Source,
		probed: f.Probed,
		read: func(m *Model) func(ctx context.Context) (any, error) {
			read := f.Read(m)
			return func(ctx context.Context) (any, error) { return settle(read(ctx)) }
		},
		put: func(d *screen.Data, answer any, now time.Time) {
			if answer, ok := answer.(*T); ok {
				f.Put(d, answer, now)
			}
		},
	}
	if typed.every == nil {
		typed.every = func(*Model) time.Duration { return 0 }
	}
	if typed.always == nil {
		typed.always = never
	}
	if typed.once == nil {
		typed.once = never
	}
	if typed.source == "" {
		typed.source = monitor.SourceDatabase
	}
	return typed
}

// into stores an answer in a field.
func into[T any](field func(d *screen.Data) **T) func(*screen.Data, *T, time.Time) {
	return func(d *screen.Data, answer *T, _ time.Time) { *field(d) = answer }
}

// dated stores an answer that carries its own time.
func noting[T any](put func(d *screen.Data, answer *T)) func(*screen.Data, *T, time.Time) {
	return func(d *screen.Data, answer *T, _ time.Time) { put(d, answer) }
}

// atMost is a fixed interval; unlessIn is one that does not hold in a view.
func atMost(every time.Duration) func(*Model) time.Duration {
	return func(*Model) time.Duration { return every }
}

func unlessIn(view screen.View, every time.Duration) func(*Model) time.Duration {
	return func(m *Model) time.Duration {
		if m.view == view {
			return 0
		}
		return every
	}
}

// previewed is the interval of the preview in the list of queues.
func previewed(m *Model) time.Duration {
	if m.view == keymap.InQueues {
		return previewEvery
	}
	return 0
}

func always(*Model) bool { return true }

const (
	// brokerEvery is the interval of the management interface, which collects its numbers no more often.
	brokerEvery = 5 * time.Second
	// evaluateEvery is the interval in which the dashboard evaluates the alert rules if no replica does.
	judgeEvery = 5 * time.Second
	// auditEvery is the interval of the check whether acting is allowed.
	auditEvery = 15 * time.Second
	// checksEvery is the interval of the checks and of counting matching executions.
	checksEvery = 30 * time.Second
	// familyEvery is the interval of reading the relatives of an execution.
	familyEvery = 5 * time.Second
	// Intervals of reading the last hour, that of workers, and the preview of a queue.
	pastEvery        = 30 * time.Second
	workersPastEvery = time.Minute
	previewEvery     = 5 * time.Second
)

var feeds = []*feed{
	of(Feed[alerting.Overview]{
		Name:   screen.FeedOverview,
		Read:   func(m *Model) func(context.Context) (*alerting.Overview, error) { return m.source.Overview },
		Put:    noting((*screen.Data).PutOverview),
		Always: always, Probed: true,
	}),
	of(Feed[monitor.Broker]{
		Name:   screen.FeedBroker,
		Read:   func(m *Model) func(context.Context) (*monitor.Broker, error) { return m.source.Broker },
		Put:    (*screen.Data).PutBroker,
		Every:  atMost(brokerEvery),
		Always: always, Source: monitor.SourceBroker, Probed: true,
	}),
	of(Feed[monitor.Queues]{
		Name: screen.FeedQueues,
		Read: func(m *Model) func(context.Context) (*monitor.Queues, error) {
			return asking(m.source.Queues, m.queues.DatabaseFilter())
		},
		Put: noting((*screen.Data).PutQueues),
	}),
	of(Feed[explain.QueueDetail]{
		Name: screen.FeedQueue,
		Read: func(m *Model) func(context.Context) (*explain.QueueDetail, error) {
			return asking(m.source.QueueDetail, explain.QueueRef{ID: m.shownQueue().Queue})
		},
		Put:   noting((*screen.Data).PutQueue),
		Every: previewed,
	}),
	of(Feed[monitor.Executions]{
		Name: screen.FeedExecutions,
		Read: func(m *Model) func(context.Context) (*monitor.Executions, error) {
			return asking2(m.source.Executions, m.executions.Query(), m.executions.Cursor())
		},
		Put:    into(func(d *screen.Data) **monitor.Executions { return &d.Executions }),
		Nudged: true,
	}),
	of(Feed[monitor.ExecutionDetail]{
		Name: screen.FeedExecution,
		Read: func(m *Model) func(context.Context) (*monitor.ExecutionDetail, error) {
			return asking(m.source.Execution, m.execution.ID())
		},
		Put:    into(func(d *screen.Data) **monitor.ExecutionDetail { return &d.Execution }),
		Nudged: true,
	}),
	of(Feed[monitor.Workers]{
		Name: screen.FeedWorkers,
		Read: func(m *Model) func(context.Context) (*monitor.Workers, error) { return m.source.Workers },
		Put:  noting((*screen.Data).PutWorkers),
	}),
	of(Feed[monitor.DeadLetters]{
		Name: screen.FeedDeadLetters,
		Read: func(m *Model) func(context.Context) (*monitor.DeadLetters, error) { return m.source.DeadLetters },
		Put:  into(func(d *screen.Data) **monitor.DeadLetters { return &d.DeadLetters }),
	}),
	of(Feed[monitor.Audit]{
		Name: screen.FeedAudit,
		Read: func(m *Model) func(context.Context) (*monitor.Audit, error) {
			below := int64(0) // only the log shows more than the newest
			if m.view == keymap.InLog {
				below = m.operations.Below()
			}
			return asking(m.source.Audit, below)
		},
		Put:   into(func(d *screen.Data) **monitor.Audit { return &d.Audit }),
		Every: unlessIn(keymap.InLog, auditEvery),
		// It tells whether acting is allowed.
		Always: func(m *Model) bool { return m.opts.Acts != nil && m.opts.ReadOnly == "" },
	}),
	of(Feed[alerting.Alerts]{
		Name:  screen.FeedAlerts,
		Read:  func(m *Model) func(context.Context) (*alerting.Alerts, error) { return m.source.Alerts },
		Put:   noting((*screen.Data).PutAlerts),
		Every: unlessIn(keymap.InAlerts, judgeEvery),
	}),
	of(Feed[monitor.WorkflowBoard]{
		Name: screen.FeedWorkflows,
		Read: func(m *Model) func(context.Context) (*monitor.WorkflowBoard, error) {
			return asking2(m.source.WorkflowBoard, m.workflows.Query(), m.workflows.Below())
		},
		Put:    into(func(d *screen.Data) **monitor.WorkflowBoard { return &d.Workflows }),
		Nudged: true,
	}),
	of(Feed[monitor.WorkflowDetail]{
		Name: screen.FeedWorkflow,
		Read: func(m *Model) func(context.Context) (*monitor.WorkflowDetail, error) {
			return asking(m.source.WorkflowTree, m.workflows.Ask())
		},
		Put:    into(func(d *screen.Data) **monitor.WorkflowDetail { return &d.Workflow }),
		Nudged: true,
	}),
	of(Feed[monitor.InquiryPage]{
		Name: screen.FeedInquiries,
		Read: func(m *Model) func(context.Context) (*monitor.InquiryPage, error) {
			return asking2(m.source.Inquiries, m.inquiries.Query(), m.inquiries.From())
		},
		Put: into(func(d *screen.Data) **monitor.InquiryPage { return &d.Inquiries }),
	}),
	of(Feed[monitor.InquiryDetail]{
		Name: screen.FeedInquiry,
		Read: func(m *Model) func(context.Context) (*monitor.InquiryDetail, error) {
			return asking(m.source.Inquiry, m.inquiries.Subject())
		},
		Put: into(func(d *screen.Data) **monitor.InquiryDetail { return &d.Inquiry }),
	}),
	of(Feed[monitor.Checks]{
		Name:  screen.FeedChecks,
		Read:  func(m *Model) func(context.Context) (*monitor.Checks, error) { return m.source.Checks },
		Put:   into(func(d *screen.Data) **monitor.Checks { return &d.Checks }),
		Every: atMost(checksEvery),
	}),
	of(Feed[monitor.Past]{
		Name:   screen.FeedPast,
		Read:   func(m *Model) func(context.Context) (*monitor.Past, error) { return m.source.Past },
		Put:    noting((*screen.Data).PutPast),
		Every:  atMost(pastEvery),
		Always: always,
		// Overview and dead letters draw the recorded past itself.
		Once: func(m *Model) bool { return m.view != keymap.InOverview && m.view != keymap.InDeadLetters },
	}),
	of(Feed[monitor.LedgerDetail]{
		Name: screen.FeedLedgerDetail,
		Read: func(m *Model) func(context.Context) (*monitor.LedgerDetail, error) {
			return asking(m.source.Letter, m.letter.ID())
		},
		Put: into(func(d *screen.Data) **monitor.LedgerDetail { return &d.LedgerDetail }),
	}),
	of(Feed[monitor.LedgerPage]{
		Name: screen.FeedLedger,
		Read: func(m *Model) func(context.Context) (*monitor.LedgerPage, error) {
			filter, cursor, asked := m.letters.Ask()
			if !asked {
				return nothing[monitor.LedgerPage]
			}
			return asking2(m.source.LedgerList, filter, cursor)
		},
		Put: into(func(d *screen.Data) **monitor.LedgerPage { return &d.LedgerPage }),
	}),
	of(Feed[monitor.Route]{
		Name: screen.FeedRoute,
		Read: func(m *Model) func(context.Context) (*monitor.Route, error) {
			exchange, key, asked := m.letter.Target()
			if !asked {
				return nothing[monitor.Route]
			}
			return asking2(m.source.Route, exchange, key)
		},
		Put:    into(func(d *screen.Data) **monitor.Route { return &d.Route }),
		Every:  atMost(checksEvery),
		Source: monitor.SourceBroker,
	}),
	of(Feed[monitor.Family]{
		Name: screen.FeedFamily,
		Read: func(m *Model) func(context.Context) (*monitor.Family, error) {
			id := m.execution.ID()
			switch m.view {
			case keymap.InXray:
				id = m.xray.ID()
			case keymap.InExecutions:
				id = m.executions.Subject()
			}
			return asking(m.source.Family, id)
		},
		Put:   into(func(d *screen.Data) **monitor.Family { return &d.Family }),
		Every: atMost(familyEvery),
	}),
	of(Feed[monitor.Line]{
		Name: screen.FeedLine,
		Read: func(m *Model) func(context.Context) (*monitor.Line, error) {
			return asking(m.source.QueueLine, m.shownQueue())
		},
		Put:   into(func(d *screen.Data) **monitor.Line { return &d.Line }),
		Every: previewed,
	}),
	of(Feed[screen.Glance]{
		Name: screen.FeedGlance,
		Read: func(m *Model) func(context.Context) (*screen.Glance, error) {
			id := m.queue.SelectedID()
			if m.view == keymap.InExecutions {
				id = m.executions.Subject()
			}
			read := asking(m.source.Execution, id)
			return func(ctx context.Context) (*screen.Glance, error) {
				d, err := read(ctx)
				if d == nil {
					return nil, err
				}
				return &screen.Glance{ExecutionDetail: d}, err
			}
		},
		Put: into(func(d *screen.Data) **screen.Glance { return &d.Glance }),
	}),
	of(Feed[monitor.WorkerDetail]{
		Name: screen.FeedWorker,
		Read: func(m *Model) func(context.Context) (*monitor.WorkerDetail, error) {
			id := m.workerList.PreviewID()
			if m.view == keymap.InWorker {
				id = m.worker.ID()
			}
			return asking(m.source.Worker, id)
		},
		Put: into(func(d *screen.Data) **monitor.WorkerDetail { return &d.Worker }),
	}),
	of(Feed[monitor.QueuesPast]{
		Name: screen.FeedQueuesPast,
		Read: func(m *Model) func(context.Context) (*monitor.QueuesPast, error) {
			id := int64(0)
			if m.view == keymap.InQueue {
				id = m.queue.ID()
			}
			return asking(m.source.QueuesPast, id)
		},
		Put:  noting((*screen.Data).PutQueuesPast),
		Once: always,
	}),
	of(Feed[monitor.WorkersPast]{
		Name:  screen.FeedWorkersPast,
		Read:  func(m *Model) func(context.Context) (*monitor.WorkersPast, error) { return m.source.WorkersPast },
		Put:   noting((*screen.Data).PutWorkersPast),
		Every: atMost(workersPastEvery),
		Once:  func(m *Model) bool { return m.view == keymap.InOverview }, // the overview needs only the beginning
	}),
	of(Feed[screen.Matches]{
		Name: screen.FeedMatches,
		Read: func(m *Model) func(context.Context) (*screen.Matches, error) {
			asked, read := m.executions.Asked(), asking(m.source.Matching, m.executions.Query())
			return func(ctx context.Context) (*screen.Matches, error) {
				n, err := screen.Answered(read(ctx))
				if err != nil {
					return nil, err
				}
				return &screen.Matches{Matching: n, Asked: asked}, nil
			}
		},
		Put:   into(func(d *screen.Data) **screen.Matches { return &d.Matches }),
		Every: atMost(checksEvery),
	}),
}

var feedNamed = func() map[screen.Feed]*feed {
	all := make(map[screen.Feed]*feed, len(feeds))
	for _, f := range feeds {
		all[f.name] = f
	}
	return all
}()

// bind binds a read to its argument.
func asking[A, T any](read func(context.Context, A) (*T, error), ask A) func(context.Context) (*T, error) {
	return func(ctx context.Context) (*T, error) { return read(ctx, ask) }
}

func asking2[A, B, T any](read func(context.Context, A, B) (*T, error), a A, b B) func(context.Context) (*T, error) {
	return func(ctx context.Context) (*T, error) { return read(ctx, a, b) }
}

// nothing is the answer if there is nothing to read.
func nothing[T any](context.Context) (*T, error) { return new(T), nil }

// untyped turns a typed nil into a nil interface.
func settle[T any](result *T, err error) (any, error) {
	if result, err = screen.Answered(result, err); result == nil {
		return nil, err
	}
	return result, err
}

// shownQueue is the open queue, or the one in the preview of the list, with the number of its queued executions to
// read.
func (m *Model) shownQueue() monitor.LineAsk {
	if m.view == keymap.InQueue {
		return m.queue.Ask()
	}
	return monitor.LineAsk{Queue: m.queues.PreviewID(), Rows: queue.PreviewRows}
}

// readAt is the database's time of an answer; zero if it has none.
func (f *feed) readAt(answer any) time.Time {
	dated, ok := answer.(interface{ ReadAt() time.Time })
	if !ok || f.source != monitor.SourceDatabase {
		return time.Time{}
	}
	return dated.ReadAt()
}
