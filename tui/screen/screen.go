// Package screen holds what the views of the dashboard share: the interface of a view, the last
// readings with their age, the history for trends, and texts and marks.
//
// A screen does no I/O and keeps no clock: the root model puts data and time into the shared Env and
// asks for lines.
package screen

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// View names a screen, as the command line does.
type View = keymap.Scope

// Feed names a read model of the monitor, which is polled.
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
	// FeedMatches counts the executions that match the filter of their list.
	FeedMatches Feed = "matches"
	// FeedLine are the executions in a queue, FeedGlance is the previewed execution.
	FeedLine   Feed = "line"
	FeedGlance Feed = "glance"
	FeedWorker Feed = "worker"
	// FeedQueuesPast and FeedWorkersPast are the last hour of queues and workers.
	FeedQueuesPast  Feed = "queues-past"
	FeedWorkersPast Feed = "workers-past"
)

// Matches counts the executions that match a filter. Asked is the number of that filter.
type Matches struct {
	*monitor.Matching

	Asked int `json:"-"`
}

// Screen is one view.
type Screen interface {
	// View is the name of the screen.
	View() View
	// Feeds lists the feeds to poll while the screen is visible. The overview and the broker are always
	// polled.
	Feeds() []Feed
	// Title is the text of the title rule, left and right.
	Title() (left, right string)
	// Render draws the body: at most h lines of at most w cells. It changes nothing.
	Render(w, h int) []string
	// Do carries out an action and returns what the root model must do.
	Do(action keymap.Action) Effect
	// Changed takes over new data of a feed from Env.
	Changed(feed Feed)
}

// Filterable is a screen whose rows can be filtered by a text.
type Filterable interface {
	Filter() string
	// SetFilter applies a filter. After a syntax error the old filter stays.
	SetFilter(text string) error
}

// Placed is a screen with tables. Drawing does not change them: the model fits them into their places after every
// change of the data, the cursor or the window, and a click selects a row of the table that is drawn there.
type Placed interface {
	// Places are the tables that are drawn in a body of w by h cells.
	Places(w, h int) Places
}

// Places are tables of a body.
type Places []Place

// Place is where a table is drawn: the line of its header, and its size. Focus runs after a click.
type Place struct {
	Table     *widget.Table
	Top, W, H int
	Focus     func()
}

// Fit fits the tables into their places.
func (p Places) Fit() {
	for _, at := range p {
		at.Table.SetSize(at.W, at.H)
	}
}

// Select puts a cursor on a line of the body.
func (p Places) Select(line int) bool {
	for _, at := range p {
		if line <= at.Top || line >= at.Top+at.H || !at.Table.Select(line-at.Top-1) {
			continue
		}
		if at.Focus != nil {
			at.Focus()
		}
		return true
	}
	return false
}

// Selectable is a screen with other rows that can be clicked.
type Selectable interface {
	// Select puts the cursor on a line of the body.
	Select(line int) bool
}

// Resizable is a screen that remembers how its documents are scrolled.
type Resizable interface {
	// SetSize fits them into a body of w by h cells, as Places does with tables.
	SetSize(w, h int)
}

// Follower is a screen with a feed about the selected row.
type Follower interface {
	// Behind names a feed whose last reading is about another row; empty if none. It is read as soon as
	// its present read has ended.
	Behind() Feed
}

// Leaver is a screen with parts that esc closes.
type Leaver interface {
	// Leave closes an open part; false if there was none.
	Leave() bool
}

// Searchable is a screen with a document that can be searched.
type Searchable interface {
	// Search goes to the first match and counts the matches. An empty text ends the search.
	Search(text string) int
	// Query is the searched text.
	Query() string
}

// Showing is a screen that shows one subject out of many, such as one execution.
type Showing interface {
	// Shown names the subject. Show turns to the beginning of another; an unknown name turns to none.
	Shown() string
	Show(name string)
}

// Revealing is a screen that can reveal secrets. Hide masks them when the screen is left.
type Revealing interface {
	Hide()
}

// Actionable is a screen with actions on its row.
type Actionable interface {
	// Acts is the menu of actions, with the reasons why some are disabled; false without a row.
	Acts() (act.Menu, bool)
}

// Taker is a paged list in which all matches can be marked, read or not.
type Taker interface {
	Tabular
	// Asked numbers the query of the rows: filter, problems and order. Late answers to another query are
	// dropped.
	Asked() int
}

// Nav is a place in the dashboard. Empty fields leave the view as it is.
type Nav struct {
	View View
	// Shown is the subject of a Showing view.
	Shown string
	// Filter is the filter to set, Row the key of the row to select.
	Filter, Row string
	// Why opens why the subject waits.
	Why bool
}

// Effect is what an action asks of the root model. The zero value asks nothing.
type Effect struct {
	// Open is the place to go to, unless its view is empty.
	Open Nav
	// Refetch names a feed to read at once.
	Refetch Feed
	// Take asks to mark every match of the filter, read or not. The screen is a Taker.
	Take bool
	// Handled is true if the screen used the action.
	Handled bool
	// Note is a short message for the operator.
	Note string
}

// Env is shared by all screens. The root model owns and writes it.
type Env struct {
	Theme *theme.Theme
	Data  *Data
	// Now is the estimated time of the database. It stands still while what is shown does: ages do not grow over
	// data that a dialog or the operator holds.
	Now time.Time
	// Skew is the database's clock minus the local one.
	Skew time.Duration
	// Clock is the local time; the age of readings is measured by it.
	Clock time.Time
	// Width and Height are the size of the body, from the last window message.
	Width, Height int
	// LastKey is the time of the last key. Rows keep their order for SettleTime after it.
	LastKey time.Time
	// Session lists the operations of this session, the oldest first.
	Session []*act.Operation
	// Locked says why acting is disabled; empty if it is not.
	Locked string
	// Quiet holds acknowledged and muted alerts.
	Quiet Quiet
}

// SettleTime is how long lists keep their order after a key.
const SettleTime = 3 * time.Second

// Reading reports whether the last key was so recent that rows must not move under the cursor.
func (e *Env) Reading() bool {
	return !e.LastKey.IsZero() && e.Clock.Sub(e.LastKey) < SettleTime
}

// Since is the age of a database time.
func (e *Env) Since(at time.Time) time.Duration { return e.Now.Sub(at) }

// Data holds the last reading of each feed.
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

// Names lists known values of a field that many views filter by: the actions with a queue, or the workers.
func (d *Data) Names(field string) []string {
	var names []string
	switch {
	case field == "action" && d.Queues != nil:
		for i := range d.Queues.List {
			names = append(names, d.Queues.List[i].ActionRef)
		}
	case field == "worker" && d.Workers != nil:
		for i := range d.Workers.List {
			names = append(names, d.Workers.List[i].Name)
		}
	}
	return names
}

// NewData makes an empty store.
func NewData() *Data {
	return &Data{History: NewHistory(), fresh: map[Feed]*Freshness{}}
}

// Freshness says how old a feed's data is and why.
type Freshness struct {
	// At is the local time at which the last answered read began; zero if there was none.
	At time.Time
	// Err is the last failure, nil after an answer. Since is when the present failures began, Fails counts
	// them.
	Err   error
	Since time.Time
	Fails int
	// Connecting means that the server has never answered, and that its failures look like those of one that starts.
	Connecting bool
	// Took is the duration of the last read, answered or not.
	Took time.Duration
	// Every is the present polling interval, Wanted the one without delays by slow reads and failures.
	Every, Wanted time.Duration
}

// Trouble is what the last failure means.
func (f *Freshness) Trouble() phrase.Trouble {
	if trouble, ok := errors.AsType[phrase.Trouble](f.Err); ok {
		return trouble
	}
	return phrase.Trouble{Fact: f.Err.Error()}
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

// Condition says whether the data of a feed can be trusted.
type Condition int

// The conditions.
const (
	// Waiting means that nothing was read yet.
	Waiting Condition = iota
	// Current means that the last poll succeeded in time.
	Current
	// Old means that the data is older than two polls.
	Old
	// Unreachable means that the last polls failed.
	Unreachable
)

// Condition evaluates a feed at the local time.
func (d *Data) Condition(feed Feed, clock time.Time) Condition {
	f := d.Fresh(feed)
	switch {
	case f.Err != nil:
		return Unreachable
	case f.At.IsZero():
		return Waiting
	case f.Wanted > 0 && clock.Sub(f.At) > 2*f.Wanted+time.Second:
		return Old
	default:
		return Current
	}
}

// Mark is the sign behind a number of the feed: a tilde if it is old, a question mark if its source is
// unreachable.
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

// Next says what follows a receipt, with the keys of what the operator can do about it.
func Next(r *act.Receipt) string {
	var parts []string
	if r.Next != "" {
		parts = append(parts, r.Next)
	}
	if r.Undo != nil {
		parts = append(parts, "u undoes it")
	}
	if r.Reverse != "" {
		parts = append(parts, "A, then "+r.Reverse.Key()+": "+r.Reverse.Verb())
	}
	if r.Opens != 0 {
		parts = append(parts, fmt.Sprintf(":e %d opens it", r.Opens))
	}
	return strings.Join(parts, "; ")
}
