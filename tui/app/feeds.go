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

// readFunc reads an answer outside of Update.
type readFunc[T any] = func(ctx context.Context) (*T, error)

// feed is one chain of polls.
type feed struct {
	name screen.Feed
	// read binds the read to the present state of the views. The returned function runs outside of Update.
	read func(m *Model) func(ctx context.Context) (any, error)
	// put stores the answer; now is the time of the database, as far as known.
	put func(d *screen.Data, answer any, now time.Time)
	// every is the shortest interval between reads, by default that of the dashboard.
	every func(m *Model) time.Duration
	// always polls the feed in every view, by default never.
	always func(m *Model) bool
	// once reads the feed once, and again after an outage of the database: other feeds extend it. The default is never.
	once func(m *Model) bool
	// nudged reads the feed sooner after a change of executions or workflows.
	nudged bool
	// source is the server that is read, by default the database. Only reads of the database tell its time. Probed
	// feeds check their source while the screen is frozen.
	source string
	probed bool
}

// declare makes a feed of a read and of what stores its answer; f has the other properties.
func declare[T any](
	name screen.Feed, read func(m *Model) readFunc[T], put func(d *screen.Data, answer *T, now time.Time), f feed,
) *feed {
	f.name, f.source = name, cmp.Or(f.source, monitor.SourceDatabase)
	f.read = func(m *Model) func(ctx context.Context) (any, error) {
		read := read(m)
		return func(ctx context.Context) (any, error) { return untyped(read(ctx)) }
	}
	f.put = func(d *screen.Data, answer any, now time.Time) {
		if answer, ok := answer.(*T); ok {
			put(d, answer, now)
		}
	}
	if f.every == nil {
		f.every = func(*Model) time.Duration { return 0 }
	}
	never := func(*Model) bool { return false }
	if f.always == nil {
		f.always = never
	}
	if f.once == nil {
		f.once = never
	}
	return &f
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
	// auditEvery is the interval of the check whether acting is allowed.
	auditEvery = 15 * time.Second
	// checksEvery is the interval of the checks and of counting matching executions. With its jitter and the read, a
	// failed check is shown within 30 s.
	checksEvery = 25 * time.Second
	// familyEvery is the interval of reading the relatives of an execution.
	familyEvery = 5 * time.Second
	// pastEvery, workersPastEvery and what follows are the intervals of reading the last hour, that of workers, and the
	// preview of a queue.
	pastEvery        = 30 * time.Second
	workersPastEvery = time.Minute
	previewEvery     = 5 * time.Second
)

var feeds = []*feed{
	declare(screen.FeedOverview,
		func(m *Model) readFunc[alerting.Overview] { return m.source.Overview },
		dated((*screen.Data).PutOverview), feed{always: always, probed: true}),
	declare(screen.FeedBroker,
		func(m *Model) readFunc[monitor.Broker] { return m.source.Broker },
		(*screen.Data).PutBroker,
		feed{every: atMost(brokerEvery), always: always, source: monitor.SourceBroker, probed: true}),
	declare(screen.FeedQueues,
		func(m *Model) readFunc[monitor.Queues] { return bind(m.source.Queues, m.queues.DatabaseFilter()) },
		dated((*screen.Data).PutQueues), feed{}),
	declare(screen.FeedQueue,
		func(m *Model) readFunc[explain.QueueDetail] {
			return bind(m.source.QueueDetail, explain.QueueRef{ID: m.shownQueue().Queue})
		},
		dated((*screen.Data).PutQueue), feed{every: previewed}),
	declare(screen.FeedExecutions,
		func(m *Model) readFunc[monitor.Executions] {
			return bind2(m.source.Executions, m.executions.Query(), m.executions.Cursor())
		},
		into(func(d *screen.Data) **monitor.Executions { return &d.Executions }), feed{nudged: true}),
	declare(screen.FeedExecution,
		func(m *Model) readFunc[monitor.ExecutionDetail] { return bind(m.source.Execution, m.execution.ID()) },
		into(func(d *screen.Data) **monitor.ExecutionDetail { return &d.Execution }), feed{nudged: true}),
	declare(screen.FeedWorkers,
		func(m *Model) readFunc[monitor.Workers] { return m.source.Workers },
		dated((*screen.Data).PutWorkers), feed{}),
	declare(screen.FeedDeadLetters,
		func(m *Model) readFunc[monitor.DeadLetters] { return m.source.DeadLetters },
		into(func(d *screen.Data) **monitor.DeadLetters { return &d.DeadLetters }), feed{}),
	// It tells whether acting is allowed.
	declare(screen.FeedAudit,
		func(m *Model) readFunc[monitor.Audit] {
			below := int64(0) // only the log shows more than the newest
			if m.view == keymap.InLog {
				below = m.operations.Below()
			}
			return bind(m.source.Audit, below)
		},
		into(func(d *screen.Data) **monitor.Audit { return &d.Audit }), feed{
			every:  unlessIn(keymap.InLog, auditEvery),
			always: func(m *Model) bool { return m.opts.Acts != nil && m.opts.ReadOnly == "" },
		}),
	declare(screen.FeedAlerts,
		func(m *Model) readFunc[alerting.Alerts] { return m.source.Alerts },
		dated((*screen.Data).PutAlerts), feed{}),
	declare(screen.FeedWorkflows,
		func(m *Model) readFunc[monitor.WorkflowBoard] {
			return bind2(m.source.WorkflowBoard, m.workflows.Query(), m.workflows.Below())
		},
		into(func(d *screen.Data) **monitor.WorkflowBoard { return &d.Workflows }), feed{nudged: true}),
	declare(screen.FeedWorkflow,
		func(m *Model) readFunc[monitor.WorkflowDetail] { return bind(m.source.WorkflowTree, m.workflows.Ask()) },
		into(func(d *screen.Data) **monitor.WorkflowDetail { return &d.Workflow }), feed{nudged: true}),
	declare(screen.FeedInquiries,
		func(m *Model) readFunc[monitor.InquiryPage] {
			return bind2(m.source.Inquiries, m.inquiries.Query(), m.inquiries.From())
		},
		into(func(d *screen.Data) **monitor.InquiryPage { return &d.Inquiries }), feed{}),
	declare(screen.FeedInquiry,
		func(m *Model) readFunc[monitor.InquiryDetail] { return bind(m.source.Inquiry, m.inquiries.Subject()) },
		into(func(d *screen.Data) **monitor.InquiryDetail { return &d.Inquiry }), feed{}),
	declare(screen.FeedChecks,
		func(m *Model) readFunc[monitor.Checks] { return m.source.Checks },
		into(func(d *screen.Data) **monitor.Checks { return &d.Checks }),
		feed{every: atMost(checksEvery), always: always}),
	// Overview and dead letters draw the recorded past itself.
	declare(screen.FeedPast,
		func(m *Model) readFunc[monitor.Past] { return m.source.Past },
		dated((*screen.Data).PutPast), feed{
			every: atMost(pastEvery), always: always,
			once: func(m *Model) bool { return m.view != keymap.InOverview && m.view != keymap.InDeadLetters },
		}),
	declare(screen.FeedLedgerDetail,
		func(m *Model) readFunc[monitor.LedgerDetail] { return bind(m.source.DeadLetter, m.deadLetter.ID()) },
		into(func(d *screen.Data) **monitor.LedgerDetail { return &d.LedgerDetail }), feed{}),
	declare(screen.FeedLedger,
		func(m *Model) readFunc[monitor.LedgerPage] {
			filter, cursor, asked := m.deadLetters.Ask()
			if !asked {
				return nothing[monitor.LedgerPage]
			}
			return bind2(m.source.LedgerList, filter, cursor)
		},
		into(func(d *screen.Data) **monitor.LedgerPage { return &d.LedgerPage }), feed{}),
	declare(screen.FeedRoute,
		func(m *Model) readFunc[monitor.Route] {
			exchange, key, asked := m.deadLetter.Target()
			if !asked {
				return nothing[monitor.Route]
			}
			return bind2(m.source.Route, exchange, key)
		},
		into(func(d *screen.Data) **monitor.Route { return &d.Route }),
		feed{every: atMost(checksEvery), source: monitor.SourceBroker}),
	declare(screen.FeedFamily,
		func(m *Model) readFunc[monitor.Family] {
			id := m.execution.ID()
			switch m.view {
			case keymap.InXray:
				id = m.xray.ID()
			case keymap.InExecutions:
				id = m.executions.Subject()
			}
			return bind(m.source.Family, id)
		},
		into(func(d *screen.Data) **monitor.Family { return &d.Family }), feed{every: atMost(familyEvery)}),
	declare(screen.FeedLine,
		func(m *Model) readFunc[monitor.Line] { return bind(m.source.QueueLine, m.shownQueue()) },
		into(func(d *screen.Data) **monitor.Line { return &d.Line }), feed{every: previewed}),
	declare(screen.FeedGlance,
		func(m *Model) readFunc[screen.Glance] {
			id := m.queue.SelectedID()
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
		into(func(d *screen.Data) **screen.Glance { return &d.Glance }), feed{}),
	declare(screen.FeedWorker,
		func(m *Model) readFunc[monitor.WorkerDetail] {
			id := m.workerList.PreviewID()
			if m.view == keymap.InWorker {
				id = m.worker.ID()
			}
			return bind(m.source.Worker, id)
		},
		into(func(d *screen.Data) **monitor.WorkerDetail { return &d.Worker }), feed{}),
	declare(screen.FeedQueuesPast,
		func(m *Model) readFunc[monitor.QueuesPast] {
			id := int64(0)
			if m.view == keymap.InQueue {
				id = m.queue.ID()
			}
			return bind(m.source.QueuesPast, id)
		},
		dated((*screen.Data).PutQueuesPast), feed{once: always}),
	declare(screen.FeedWorkersPast,
		func(m *Model) readFunc[monitor.WorkersPast] { return m.source.WorkersPast },
		dated((*screen.Data).PutWorkersPast),
		feed{every: atMost(workersPastEvery), once: func(m *Model) bool { return m.view == keymap.InOverview }}),
	declare(screen.FeedMatches,
		func(m *Model) readFunc[screen.Matches] {
			asked, read := m.executions.Asked(), bind(m.source.Matching, m.executions.Query())
			return func(ctx context.Context) (*screen.Matches, error) {
				n, err := screen.Answered(read(ctx))
				if err != nil {
					return nil, err
				}
				return &screen.Matches{Matching: n, Asked: asked}, nil
			}
		},
		into(func(d *screen.Data) **screen.Matches { return &d.Matches }), feed{every: atMost(checksEvery)}),
}

// feedWord is the name of a feed on the screen.
func feedWord(feed screen.Feed) string {
	return cmp.Or(map[screen.Feed]string{
		screen.FeedDeadLetters: "dead letters", screen.FeedLedgerDetail: "dead letter", screen.FeedPast: "last hour",
		screen.FeedRoute: "target", screen.FeedMatches: "number of matches",
		screen.FeedLine: "queued executions", screen.FeedGlance: "preview",
		screen.FeedQueuesPast: "trends of queues", screen.FeedWorkersPast: "trends of workers",
	}[feed], string(feed))
}

// feedNamed are the feeds by name.
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
