// Package screen is what every view of the dashboard shares: the interface that
// the root model speaks to, the data that was read last with its age, the
// trends kept between polls, and the words and marks that all views use alike.
//
// A screen is a plain struct. It never does I/O and keeps no clock: the root
// model puts data and time into the shared Env, and asks for lines.
package screen

import (
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
)

// View names a screen. The names are those of the command line.
type View = keymap.Scope

// Feed names one chain of polls. A feed is one read model of the monitor.
type Feed string

// The feeds.
const (
	FeedOverview     Feed = "overview"
	FeedBroker       Feed = "broker"
	FeedQueues       Feed = "queues"
	FeedQueue        Feed = "queue"
	FeedExecutions   Feed = "executions"
	FeedExecution    Feed = "execution"
	FeedWorkers      Feed = "workers"
	FeedDeadLetters  Feed = "dlq"
	FeedAudit        Feed = "audit"
	FeedAlerts       Feed = "alerts"
	FeedFamily       Feed = "family"
	FeedWorkflows    Feed = "workflows"
	FeedWorkflow     Feed = "workflow"
	FeedInquiries    Feed = "inquiries"
	FeedInquiry      Feed = "inquiry"
	FeedChecks       Feed = "checks"
	FeedPast         Feed = "past"
	FeedLedgerDetail Feed = "letter"
	FeedLedger       Feed = "ledger"
	FeedRoute        Feed = "route"
	// FeedMatches is how many executions the filter of their list matches.
	FeedMatches Feed = "matches"
	// FeedLine is who stands in a queue, FeedGlance the execution under the cursor of a
	// view that shows it beside its rows.
	FeedLine   Feed = "line"
	FeedGlance Feed = "glance"
	FeedWorker Feed = "worker"
	// FeedQueuesPast and FeedWorkersPast are the last hour.
	FeedQueuesPast  Feed = "queues-past"
	FeedWorkersPast Feed = "workers-past"
)

// Matches is how many executions a filter matches, and which question of the list that
// answers.
type Matches struct {
	*monitor.Matching

	Asked int `json:"-"`
}

// Screen is one view.
type Screen interface {
	// View is the name of the screen.
	View() View
	// Feeds lists what must be polled while the screen is visible, apart from
	// the overview and the broker, which are always polled.
	Feeds() []Feed
	// Title is the text of the title rule, left and right.
	Title() (left, right string)
	// Render draws the body: at most h lines of at most w cells.
	Render(w, h int) []string
	// Do carries out an action and says what the root model has to do.
	Do(action keymap.Action) Effect
	// Changed tells the screen that new data of a feed is in Env.
	Changed(feed Feed)
}

// Filterable is a screen whose rows can be filtered by a text.
type Filterable interface {
	Filter() string
	// SetFilter applies a filter; one that cannot be understood is an error and
	// leaves the old one in place.
	SetFilter(text string) error
}

// Selectable is a screen with rows that can be pointed at.
type Selectable interface {
	// Select puts the cursor on a line of the body, as it was last drawn.
	Select(line int) bool
}

// Follower is a screen with a feed that is about the row under the cursor.
type Follower interface {
	// Behind names the feed whose data is about something else than is to be shown
	// now; empty when there is none. It is read as soon as its last read has ended.
	Behind() Feed
}

// Leaver is a screen that may have something of its own open.
type Leaver interface {
	// Leave closes it, and reports false when there was nothing to close.
	Leave() bool
}

// Searchable is a screen with a document that can be searched.
type Searchable interface {
	// Search goes to the first place that has the text and returns how many there
	// are. An empty text ends the search.
	Search(text string) int
	// Query is the text that is looked for.
	Query() string
}

// Showing is a screen that shows one thing out of many, such as one execution.
type Showing interface {
	// Shown names it, and Show turns to another, to its beginning. A name that means
	// nothing here turns to none.
	Shown() string
	Show(name string)
}

// Revealing is a screen that can show secrets. They are masked again when it is
// left.
type Revealing interface {
	Hide()
}

// Actionable is a screen whose row can be acted upon.
type Actionable interface {
	// Acts is what may be done with the row under the cursor, and why the rest may
	// not; false when there is no row.
	Acts() (act.Menu, bool)
}

// Taker is a list of which only a part was read, but all of which can be marked.
type Taker interface {
	Tabular
	// Asked numbers the question that the rows answer: filter, problems and order.
	// Rows that answer another one are not marked.
	Asked() int
}

// Nav is a place in the dashboard.
type Nav struct {
	View View
	// Shown names what is shown there, where the view is Showing; empty leaves that to it.
	Shown string
	// Filter is put in place there, and Row is the key of the row to go to, unless they are
	// empty.
	Filter, Row string
}

// Effect is what an action asks of the root model. The zero value asks nothing.
type Effect struct {
	// Open is the place to go to, none while it names no view.
	Open Nav
	// Refetch asks for new data of a feed at once.
	Refetch Feed
	// Take asks to mark every row that the filter matches now, not only those that
	// were read. The screen is a Taker.
	Take bool
	// Handled is true when the screen used the action up.
	Handled bool
	// Note is a short message for the operator.
	Note string
}

// Env is what all screens share. The root model owns and writes it.
type Env struct {
	Theme *theme.Theme
	Data  *Data
	// Now is the time of the database as far as it is known.
	Now time.Time
	// Clock is the local time, against which the age of data is measured.
	Clock time.Time
	// Width and Height are the room that views are drawn in.
	Width, Height int
	// LastKey is when a key was pressed last. Rows stay in their order for
	// SettleTime after it.
	LastKey time.Time
	// Session lists the operations of this session, the oldest first.
	Session []*act.Operation
	// Locked says why nothing can be acted upon; empty where it can.
	Locked string
	// Quiet is what was done about alerts in this session.
	Quiet Quiet
}

// SettleTime is how long after a key press lists keep their order.
const SettleTime = 3 * time.Second

// Reading reports whether the operator has pressed a key so lately that rows
// must not move under the cursor.
func (e *Env) Reading() bool {
	return !e.LastKey.IsZero() && e.Clock.Sub(e.LastKey) < SettleTime
}

// Since is the age of a database time.
func (e *Env) Since(at time.Time) time.Duration { return e.Now.Sub(at) }

// Data is what was read last.
type Data struct {
	Overview     *alerting.Overview       `json:"overview,omitempty"`
	Broker       *monitor.Broker          `json:"broker,omitempty"`
	Queues       *monitor.Queues          `json:"queues,omitempty"`
	Queue        *explain.QueueDetail     `json:"queue,omitempty"`
	Executions   *monitor.Executions      `json:"executions,omitempty"`
	Execution    *monitor.ExecutionDetail `json:"execution,omitempty"`
	Matches      *Matches                 `json:"matches,omitempty"`
	Workers      *monitor.Workers         `json:"workers,omitempty"`
	DeadLetters  *monitor.DeadLetters     `json:"dlq,omitempty"`
	Audit        *monitor.Audit           `json:"audit,omitempty"`
	Alerts       *alerting.Alerts         `json:"alerts,omitempty"`
	Workflows    *monitor.WorkflowBoard   `json:"workflows,omitempty"`
	Workflow     *monitor.WorkflowDetail  `json:"workflow,omitempty"`
	Inquiries    *monitor.InquiryPage     `json:"inquiries,omitempty"`
	Inquiry      *monitor.InquiryDetail   `json:"inquiry,omitempty"`
	Checks       *monitor.Checks          `json:"checks,omitempty"`
	LedgerDetail *monitor.LedgerDetail    `json:"letter,omitempty"`
	LedgerPage   *monitor.LedgerPage      `json:"-"`
	Route        *monitor.Route           `json:"route,omitempty"`
	Past         *monitor.Past            `json:"past,omitempty"`
	Family       *monitor.Family          `json:"family,omitempty"`
	Line         *monitor.Line            `json:"line,omitempty"`
	Glance       *Glance                  `json:"glance,omitempty"`
	Worker       *monitor.WorkerDetail    `json:"worker,omitempty"`
	QueuesPast   *monitor.QueuesPast      `json:"queues_past,omitempty"`
	WorkersPast  *monitor.WorkersPast     `json:"workers_past,omitempty"`
	History      *History                 `json:"-"`
	fresh        map[Feed]*Freshness
	attention    attention
}

// NewData makes an empty store.
func NewData() *Data {
	return &Data{History: NewHistory(), fresh: map[Feed]*Freshness{}}
}

// Freshness says how old a feed's data is and why.
type Freshness struct {
	// At is the local time of the last answer; zero if there never was one.
	At time.Time
	// Err is the last failure, nil after an answer; Since is when the row of
	// failures began and Fails its length.
	Err   error
	Since time.Time
	Fails int
	// Took is the duration of the last read, answered or not.
	Took time.Duration
	// Every is the interval at which the feed is polled now.
	Every time.Duration
}

// Fresh returns the freshness of a feed. It is never nil.
func (d *Data) Fresh(feed Feed) *Freshness {
	f, ok := d.fresh[feed]
	if !ok {
		f = &Freshness{}
		d.fresh[feed] = f
	}
	return f
}

// Condition is how far the data of a feed can be trusted.
type Condition int

// The conditions.
const (
	// Waiting means that nothing was ever read.
	Waiting Condition = iota
	// Current means that the last poll answered in time.
	Current
	// Old means that the data is older than two polls.
	Old
	// Unreachable means that the last polls failed.
	Unreachable
)

// Condition judges a feed at the local time.
func (d *Data) Condition(feed Feed, clock time.Time) Condition {
	f := d.Fresh(feed)
	switch {
	case f.Err != nil:
		return Unreachable
	case f.At.IsZero():
		return Waiting
	case f.Every > 0 && clock.Sub(f.At) > 2*f.Every+time.Second:
		return Old
	default:
		return Current
	}
}

// Mark is the sign behind a number of the feed: nothing while it is current, a
// tilde when it is old, a question mark when its source is unreachable.
func (e *Env) Mark(feed Feed) string {
	switch e.Data.Condition(feed, e.Clock) {
	case Old:
		return "~"
	case Unreachable:
		return "?"
	default:
		return ""
	}
}
