package app

import (
	"cmp"
	"context"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/queue"
)

// feedSpec is one chain of polls.
type feedSpec[T any] struct {
	Name screen.Feed
	// Read binds the read to the present state of the views. The returned function runs outside of Update.
	Read func(m *Model) readFunc[T]
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

// readFunc reads an answer outside of Update.
type readFunc[T any] = func(ctx context.Context) (*T, error)

// feed is a feedSpec of any type.
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

// declare sets the defaults of a feed.
func declare[T any](f feedSpec[T]) *feed {
	typed := &feed{
		name: f.Name, every: f.Every, always: f.Always, once: f.Once, nudged: f.Nudged,
		source: cmp.Or(f.Source, monitor.SourceDatabase), probed: f.Probed,
		read: func(m *Model) func(ctx context.Context) (any, error) {
			read := f.Read(m)
			return func(ctx context.Context) (any, error) { return untyped(read(ctx)) }
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
	never := func(*Model) bool { return false }
	if typed.always == nil {
		typed.always = never
	}
	if typed.once == nil {
		typed.once = never
	}
	return typed
}

// into stores an answer in a field.
func into[T any](field func(d *screen.Data) **T) func(*screen.Data, *T, time.Time) {
	return func(d *screen.Data, answer *T, _ time.Time) { *field(d) = answer }
}

// dated stores an answer that carries its own time.
func dated[T any](put func(d *screen.Data, answer *T)) func(*screen.Data, *T, time.Time) {
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
	evaluateEvery = 5 * time.Second
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
	declare(feedSpec[alerting.Overview]{
		Name:   screen.FeedOverview,
		Read:   func(m *Model) readFunc[alerting.Overview] { return m.source.Overview },
		Put:    dated((*screen.Data).PutOverview),
		Always: always, Probed: true,
	}),
	declare(feedSpec[monitor.Broker]{
		Name:   screen.FeedBroker,
		Read:   func(m *Model) readFunc[monitor.Broker] { return m.source.Broker },
		Put:    (*screen.Data).PutBroker,
		Every:  atMost(brokerEvery),
		Always: always, Source: monitor.SourceBroker, Probed: true,
	}),
	declare(feedSpec[monitor.Queues]{
		Name: screen.FeedQueues,
		Read: func(m *Model) readFunc[monitor.Queues] {
			return bind(m.source.Queues, m.queues.Wanted())
		},
		Put: dated((*screen.Data).PutQueues),
	}),
	declare(feedSpec[explain.QueueDetail]{
		Name: screen.FeedQueue,
		Read: func(m *Model) readFunc[explain.QueueDetail] {
			return bind(m.source.QueueDetail, explain.QueueRef{ID: m.shownQueue().Queue})
		},
		Put:   dated((*screen.Data).PutQueue),
		Every: previewed,
	}),
	declare(feedSpec[monitor.Executions]{
		Name: screen.FeedExecutions,
		Read: func(m *Model) readFunc[monitor.Executions] {
			return bind2(m.source.Executions, m.executions.Query(), m.executions.Cursor())
		},
		Put:    into(func(d *screen.Data) **monitor.Executions { return &d.Executions }),
		Nudged: true,
	}),
	declare(feedSpec[monitor.ExecutionDetail]{
		Name: screen.FeedExecution,
		Read: func(m *Model) readFunc[monitor.ExecutionDetail] {
			return bind(m.source.Execution, m.execution.ID())
		},
		Put:    into(func(d *screen.Data) **monitor.ExecutionDetail { return &d.Execution }),
		Nudged: true,
	}),
	declare(feedSpec[monitor.Workers]{
		Name: screen.FeedWorkers,
		Read: func(m *Model) readFunc[monitor.Workers] { return m.source.Workers },
		Put:  dated((*screen.Data).PutWorkers),
	}),
	declare(feedSpec[monitor.DeadLetters]{
		Name: screen.FeedDeadLetters,
		Read: func(m *Model) readFunc[monitor.DeadLetters] { return m.source.DeadLetters },
		Put:  into(func(d *screen.Data) **monitor.DeadLetters { return &d.DeadLetters }),
	}),
	declare(feedSpec[monitor.Audit]{
		Name: screen.FeedAudit,
		Read: func(m *Model) readFunc[monitor.Audit] {
			below := int64(0) // only the log shows more than the newest
			if m.view == keymap.InLog {
				below = m.operations.Below()
			}
			return bind(m.source.Audit, below)
		},
		Put:   into(func(d *screen.Data) **monitor.Audit { return &d.Audit }),
		Every: unlessIn(keymap.InLog, auditEvery),
		// It tells whether acting is allowed.
		Always: func(m *Model) bool { return m.opts.Acts != nil && m.opts.ReadOnly == "" },
	}),
	declare(feedSpec[alerting.Alerts]{
		Name:  screen.FeedAlerts,
		Read:  func(m *Model) readFunc[alerting.Alerts] { return m.source.Alerts },
		Put:   dated((*screen.Data).PutAlerts),
		Every: unlessIn(keymap.InAlerts, evaluateEvery),
	}),
	declare(feedSpec[monitor.WorkflowBoard]{
		Name: screen.FeedWorkflows,
		Read: func(m *Model) readFunc[monitor.WorkflowBoard] {
			return bind2(m.source.WorkflowBoard, m.workflows.Query(), m.workflows.Below())
		},
		Put:    into(func(d *screen.Data) **monitor.WorkflowBoard { return &d.Workflows }),
		Nudged: true,
	}),
	declare(feedSpec[monitor.WorkflowDetail]{
		Name: screen.FeedWorkflow,
		Read: func(m *Model) readFunc[monitor.WorkflowDetail] {
			return bind(m.source.WorkflowTree, m.workflows.Ask())
		},
		Put:    into(func(d *screen.Data) **monitor.WorkflowDetail { return &d.Workflow }),
		Nudged: true,
	}),
	declare(feedSpec[monitor.InquiryPage]{
		Name: screen.FeedInquiries,
		Read: func(m *Model) readFunc[monitor.InquiryPage] {
			return bind2(m.source.Inquiries, m.inquiries.Query(), m.inquiries.From())
		},
		Put: into(func(d *screen.Data) **monitor.InquiryPage { return &d.Inquiries }),
	}),
	declare(feedSpec[monitor.InquiryDetail]{
		Name: screen.FeedInquiry,
		Read: func(m *Model) readFunc[monitor.InquiryDetail] {
			return bind(m.source.Inquiry, m.inquiries.Subject())
		},
		Put: into(func(d *screen.Data) **monitor.InquiryDetail { return &d.Inquiry }),
	}),
	declare(feedSpec[monitor.Checks]{
		Name:  screen.FeedChecks,
		Read:  func(m *Model) readFunc[monitor.Checks] { return m.source.Checks },
		Put:   into(func(d *screen.Data) **monitor.Checks { return &d.Checks }),
		Every: atMost(checksEvery),
	}),
	declare(feedSpec[monitor.Past]{
		Name:   screen.FeedPast,
		Read:   func(m *Model) readFunc[monitor.Past] { return m.source.Past },
		Put:    dated((*screen.Data).PutPast),
		Every:  atMost(pastEvery),
		Always: always,
		// Overview and dead letters draw the recorded past itself.
		Once: func(m *Model) bool { return m.view != keymap.InOverview && m.view != keymap.InDeadLetters },
	}),
	declare(feedSpec[monitor.LedgerDetail]{
		Name: screen.FeedLetter,
		Read: func(m *Model) readFunc[monitor.LedgerDetail] {
			return bind(m.source.Letter, m.letter.ID())
		},
		Put: into(func(d *screen.Data) **monitor.LedgerDetail { return &d.LedgerDetail }),
	}),
	declare(feedSpec[monitor.LedgerPage]{
		Name: screen.FeedLedger,
		Read: func(m *Model) readFunc[monitor.LedgerPage] {
			filter, cursor, asked := m.letters.Ask()
			if !asked {
				return nothing[monitor.LedgerPage]
			}
			return bind2(m.source.LedgerList, filter, cursor)
		},
		Put: into(func(d *screen.Data) **monitor.LedgerPage { return &d.LedgerPage }),
	}),
	declare(feedSpec[monitor.Route]{
		Name: screen.FeedRoute,
		Read: func(m *Model) readFunc[monitor.Route] {
			exchange, key, asked := m.letter.Target()
			if !asked {
				return nothing[monitor.Route]
			}
			return bind2(m.source.Route, exchange, key)
		},
		Put:    into(func(d *screen.Data) **monitor.Route { return &d.Route }),
		Every:  atMost(checksEvery),
		Source: monitor.SourceBroker,
	}),
	declare(feedSpec[monitor.Family]{
		Name: screen.FeedFamily,
		Read: func(m *Model) readFunc[monitor.Family] {
			id := m.execution.ID()
			switch m.view {
			case keymap.InXray:
				id = m.xray.ID()
			case keymap.InExecutions:
				id = m.executions.Subject()
			}
			return bind(m.source.Family, id)
		},
		Put:   into(func(d *screen.Data) **monitor.Family { return &d.Family }),
		Every: atMost(familyEvery),
	}),
	declare(feedSpec[monitor.Line]{
		Name: screen.FeedLine,
		Read: func(m *Model) readFunc[monitor.Line] {
			return bind(m.source.QueueLine, m.shownQueue())
		},
		Put:   into(func(d *screen.Data) **monitor.Line { return &d.Line }),
		Every: previewed,
	}),
	declare(feedSpec[screen.Glance]{
		Name: screen.FeedGlance,
		Read: func(m *Model) readFunc[screen.Glance] {
			id := m.queue.Subject()
			if m.view == keymap.InExecutions {
				id = m.executions.Subject()
			}
			read := bind(m.source.Execution, id)
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
	declare(feedSpec[monitor.WorkerDetail]{
		Name: screen.FeedWorker,
		Read: func(m *Model) readFunc[monitor.WorkerDetail] {
			id := m.workerList.Subject()
			if m.view == keymap.InWorker {
				id = m.worker.ID()
			}
			return bind(m.source.Worker, id)
		},
		Put: into(func(d *screen.Data) **monitor.WorkerDetail { return &d.Worker }),
	}),
	declare(feedSpec[monitor.QueuesPast]{
		Name: screen.FeedQueuesPast,
		Read: func(m *Model) readFunc[monitor.QueuesPast] {
			id := int64(0)
			if m.view == keymap.InQueue {
				id = m.queue.ID()
			}
			return bind(m.source.QueuesPast, id)
		},
		Put:  dated((*screen.Data).PutQueuesPast),
		Once: always,
	}),
	declare(feedSpec[monitor.WorkersPast]{
		Name:  screen.FeedWorkersPast,
		Read:  func(m *Model) readFunc[monitor.WorkersPast] { return m.source.WorkersPast },
		Put:   dated((*screen.Data).PutWorkersPast),
		Every: atMost(workersPastEvery),
		Once:  func(m *Model) bool { return m.view == keymap.InOverview }, // the overview needs only the beginning
	}),
	declare(feedSpec[screen.Matches]{
		Name: screen.FeedMatches,
		Read: func(m *Model) readFunc[screen.Matches] {
			asked, read := m.executions.Asked(), bind(m.source.Matching, m.executions.Query())
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
func bind[A, T any](read func(context.Context, A) (*T, error), a A) readFunc[T] {
	return func(ctx context.Context) (*T, error) { return read(ctx, a) }
}

func bind2[A, B, T any](read func(context.Context, A, B) (*T, error), a A, b B) readFunc[T] {
	return func(ctx context.Context) (*T, error) { return read(ctx, a, b) }
}

// nothing is the answer if there is nothing to read.
func nothing[T any](context.Context) (*T, error) { return new(T), nil }

// untyped turns a typed nil into a nil interface.
func untyped[T any](result *T, err error) (any, error) {
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
