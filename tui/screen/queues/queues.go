// Package queues is the list of admission queues: who waits, how long, and
// whether the queue drains.
package queues

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/screen/queue"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// The columns a list can be sorted by, in the order of the picker.
const (
	byHead = iota
	byQueued
	byRunning
	byDone
	byName
)

var sortKeys = []string{"head", "queued", "running", "done", "name"}

// Queues is the view.
type Queues struct {
	env   *screen.Env
	table *widget.Table
	rows  []monitor.Queue
	keys  []string
	screen.Filtered
	screen.Sorted

	problems bool
	preview  bool
}

var columns = []widget.Column{
	{Title: "", Width: 1},
	{Title: "ACTION / GROUP", Width: 22, Grow: true, Middle: true},
	{Title: "QUEUED", Width: 8, Right: true, Watch: true},
	{Title: "RUN/MAX", Width: 8, Right: true, Watch: true},
	{Title: "HEAD", Width: 7, Right: true},
	{Title: "DONE", Width: 8, Right: true, Priority: 2},
	{Title: "Δ1m", Width: 6, Right: true, Priority: 3},
	{Title: "ETA", Width: 7, Right: true, Priority: 6},
	{Title: "TOTAL", Width: 9, Right: true, Priority: 5},
	{Title: "15m", Width: 7, Priority: 4},
	{Title: "NOTE", Width: 22, Share: 60, Priority: 7},
}

// New makes the view.
func New(env *screen.Env) *Queues {
	return &Queues{env: env, table: widget.NewTable(columns), preview: true, Filtered: screen.NewFiltered(fields), Sorted: screen.NewSorted(sortKeys...)}
}

// Table is the list, with its marks and columns.
func (q *Queues) Table() *widget.Table { return q.table }

// Problems reports whether only what means trouble is listed.
func (q *Queues) Problems() bool { return q.problems }

// View is the name of the screen.
func (q *Queues) View() screen.View { return keymap.InQueues }

// Feeds is what the view needs polled.
func (q *Queues) Feeds() []screen.Feed {
	feeds := []screen.Feed{screen.FeedQueues, screen.FeedQueuesPast}
	if q.Subject() != 0 {
		feeds = append(feeds, screen.FeedQueue, screen.FeedLine)
	}
	return feeds
}

// Subject is the queue that is told of below the list; zero where there is none, or
// where queues are not recorded one by one.
func (q *Queues) Subject() int64 {
	at := q.table.Cursor()
	if at < 0 || q.rows[at].LimitFrom.Kind == "" || screen.PreviewHeight(q.env.Width, q.env.Height, q.preview) == 0 {
		return 0
	}
	return q.rows[at].ID
}

// Behind names what is to be read when another queue is told of than was read last.
func (q *Queues) Behind() screen.Feed {
	if id := q.Subject(); id != 0 {
		return queue.Unread(q.env, id)
	}
	return ""
}

// Wanted is what the database is asked for.
func (q *Queues) Wanted() monitor.QueueFilter {
	return monitor.QueueFilter{Text: narrowed(q.Query())}
}

// Title is the text of the title rule.
func (q *Queues) Title() (left, right string) {
	right = screen.ListTitle("sort "+q.SortKey()+q.Order().Arrow(q.Order().Column != byName), q.problems, q.Filter())
	if d := q.env.Data.Queues; d != nil {
		right += " · " + strconv.Itoa(len(q.rows))
		if d.More {
			right += "+, busiest"
		}
		right += q.env.Mark(screen.FeedQueues)
	}
	return "Queues  per action, FIFO", right
}

// SetFilter keeps the queues that pass.
func (q *Queues) SetFilter(text string) error {
	if err := q.SetQuery(text); err != nil {
		return err
	}
	q.rebuild(true)
	return nil
}

// SetOrder orders the list.
func (q *Queues) SetOrder(order screen.Order) {
	if q.Sort(order) {
		q.rebuild(true)
	}
}

// Select puts the cursor on a line of the body.
func (q *Queues) Select(line int) bool { return q.table.Select(line - 1) }

// Changed takes over new data.
func (q *Queues) Changed(feed screen.Feed) {
	if feed == screen.FeedQueues {
		q.rebuild(false)
	}
}

// Do carries out an action.
func (q *Queues) Do(action keymap.Action) screen.Effect {
	if screen.MoveTable(q.table, action) {
		return screen.Effect{Handled: true}
	}
	switch action {
	case keymap.Problems:
		q.problems = !q.problems
		q.rebuild(true)
	case keymap.Preview:
		q.preview = !q.preview
	case keymap.Open:
		if row := q.table.Cursor(); row >= 0 {
			return q.open(q.rows[row])
		}
	default:
		return screen.Effect{}
	}
	return screen.Effect{Handled: true}
}

// open shows the queue, or its action's executions where queues are not recorded
// one by one.
func (q *Queues) open(row monitor.Queue) screen.Effect {
	if row.LimitFrom.Kind == "" {
		return screen.Effect{Handled: true, Open: keymap.InExecutions, Filter: "action:" + row.ActionRef}
	}
	return screen.Effect{Handled: true, Open: keymap.InQueue, Queue: row.ID}
}

// rebuild filters and sorts. Unless the operator asked for it, rows keep their
// order while somebody reads.
func (q *Queues) rebuild(asked bool) {
	d := q.env.Data.Queues
	if d == nil {
		return
	}
	rows := make([]monitor.Queue, 0, len(d.List))
	for _, row := range d.List {
		if q.matches(row) {
			rows = append(rows, row)
		}
	}
	old := q.keys
	if asked {
		old = nil
	}
	q.rows, q.keys = screen.Arrange(q.env, rows, old, q.compare, func(r *monitor.Queue) string { return strconv.FormatInt(r.ID, 10) })
	q.table.SetRows(q)
}

func (q *Queues) matches(row monitor.Queue) bool {
	if q.problems && !q.worrying(row) {
		return false
	}
	return q.Matches(asked{q, &row})
}

func (q *Queues) worrying(row monitor.Queue) bool {
	return row.Paused || row.Blocked != "" || q.late(row)
}

func (q *Queues) late(row monitor.Queue) bool {
	return row.Oldest != nil && q.env.Since(*row.Oldest) > monitor.HeadWaitLimit
}

func (q *Queues) compare(a, b *monitor.Queue) int {
	var c int
	switch q.Order().Column {
	case byHead:
		c = compareHead(a.Oldest, b.Oldest)
	case byQueued:
		c = cmp.Compare(b.Queued, a.Queued)
	case byRunning:
		c = cmp.Compare(b.Active, a.Active)
	case byDone:
		c = cmp.Compare(b.Completed, a.Completed)
	}
	if c != 0 {
		return q.Order().Apply(c)
	}
	if q.Order().Column == byName {
		return q.Order().Apply(cmp.Compare(a.Name(), b.Name()))
	}
	return cmp.Compare(a.Name(), b.Name())
}

// compareHead orders the longest wait first; nobody waiting comes last.
func compareHead(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return a.Compare(*b)
	}
}

// Len is the number of rows.
func (q *Queues) Len() int { return len(q.rows) }

// Key identifies a row.
func (q *Queues) Key(row int) string { return q.keys[row] }

// Name is what people call a row.
func (q *Queues) Name(row int) string { return screen.QueueName(&q.rows[row]) }

// Cells are the texts of a row.
func (q *Queues) Cells(row int, into []widget.Cell) []widget.Cell {
	e, r := q.env, q.rows[row]
	state, note := q.verdict(r)
	look := e.Theme.Of(state)
	return append(into,
		widget.Cell{Text: look.Glyph, Role: look.Role},
		widget.Cell{Text: screen.QueueName(&r)},
		widget.Cell{Text: e.Num(r.Queued)},
		e.Worry(screen.Slots(r.Active, r.Limit), r.Full() && r.Queued > 0),
		e.Worry(e.AgeOf(r.Oldest), q.late(r)),
		widget.Cell{Text: e.PerMinute(screen.QueueDone(r.ID))},
		widget.Cell{Text: e.Change(screen.QueueSeries(r.ID), time.Minute)},
		widget.Cell{Text: q.drain(r)},
		widget.Cell{Text: e.Num(r.Completed)},
		widget.Cell{Text: e.Spark(screen.QueueSeries(r.ID), 15*time.Minute, 7), Role: theme.Dim},
		widget.Cell{Text: note, Role: theme.Dim},
	)
}

// verdict is the state of a queue and, in words, why.
func (q *Queues) verdict(r monitor.Queue) (state, note string) {
	switch {
	case r.Paused:
		return "paused", pausedNote(r)
	case r.Blocked != "":
		return "warning", q.blockedNote(r)
	case q.late(r):
		return "warning", "head waits long"
	case r.Queued == 0 && r.Active == 0:
		return "idle", sourceNote(r)
	default:
		return "active", sourceNote(r)
	}
}

func pausedNote(r monitor.Queue) string {
	note := "paused"
	if r.PausedBy != "" {
		note += " by " + r.PausedBy
	}
	if r.PauseReason != "" {
		note += " " + r.PauseReason
	}
	return note
}

func (q *Queues) blockedNote(r monitor.Queue) string {
	if r.BlockedUntil != nil && r.BlockedUntil.After(q.env.Now) {
		return r.Blocked + ", again in " + widget.Short(r.BlockedUntil.Sub(q.env.Now))
	}
	return r.Blocked
}

// sourceNote says who set the limit, and who waits in other lanes than most.
func sourceNote(r monitor.Queue) string {
	note := ""
	switch r.LimitFrom.Kind {
	case monitor.LimitPolicy:
		note = "limit of a policy that is gone"
		if r.LimitFrom.Policy != "" {
			note = "limit of " + r.LimitFrom.Policy
		}
	case monitor.LimitOverride:
		note = "limit set by hand"
	case monitor.LimitAdaptive:
		note = "limit adapted"
	}
	if lanes := lanesNote(r); lanes != "" {
		note = strings.TrimPrefix(note+", "+lanes, ", ")
	}
	return note
}

func lanesNote(r monitor.Queue) string {
	switch {
	case r.QueuedHigh > 0 && r.QueuedLow > 0:
		return strconv.FormatInt(r.QueuedHigh, 10) + " high " + strconv.FormatInt(r.QueuedLow, 10) + " low"
	case r.QueuedHigh > 0:
		return strconv.FormatInt(r.QueuedHigh, 10) + " high"
	case r.QueuedLow > 0:
		return strconv.FormatInt(r.QueuedLow, 10) + " low"
	default:
		return ""
	}
}

// drain estimates how long the queue needs at its present rate.
func (q *Queues) drain(r monitor.Queue) string {
	if r.Queued == 0 {
		return "-"
	}
	rate, ok := q.env.Data.History.PerMinute(screen.QueueDone(r.ID))
	switch {
	case !ok, rate < 0.01 && r.Active > 0 && !r.Paused: // no execution has ended yet, but some run
		return widget.Unknown
	case rate < 0.01:
		return "never"
	default:
		return widget.Short(time.Duration(float64(r.Queued) / rate * float64(time.Minute)))
	}
}

// Render draws the view.
func (q *Queues) Render(w, h int) []string {
	e, d := q.env, q.env.Data.Queues
	if d == nil {
		return e.Missing(screen.FeedQueues, "the queues", w)
	}
	if len(q.rows) == 0 {
		return q.empty(d)
	}
	foot := q.summary(d)
	ph := screen.PreviewHeight(w, h, q.preview)
	lines := widget.Fit(q.table.Lines(w, h-ph-len(foot), e.Theme), w, h-ph-len(foot))
	if ph > 0 {
		lines = append(lines, widget.Fit(q.previewLines(w, ph), w, ph)...)
	}
	return append(lines, foot...)
}

func (q *Queues) empty(d *monitor.Queues) []string {
	switch {
	case q.Filter() != "":
		return []string{"", " No queue matches /" + widget.Clean(q.Filter()) + ".  esc clears the filter"}
	case q.problems:
		return []string{"", " " + q.env.Paint(theme.Good, "✓") + " No queue has a problem.  z shows all " + q.env.Num(d.Totals.Queues)}
	default:
		return []string{
			"", " No queue exists yet. The first execution of an action makes one:",
			"   attune-executor run core.echo -p message=hello",
		}
	}
}

func (q *Queues) summary(d *monitor.Queues) []string {
	e, t := q.env, d.Totals
	mark := e.Mark(screen.FeedQueues)
	slots := ""
	if t.Slots > 0 { // where nothing is limited there are none to count
		slots = " · " + e.Num(t.Slots) + " limited slots"
	}
	return []string{
		" " + e.Num(t.Queues) + mark + " queues · " + e.Num(t.Queued) + mark + " queued · " + e.Num(t.Active) + mark + " running" + slots + q.env.GoneNote(q.table, "the queue under the cursor"),
		e.Paint(theme.Dim, " head = wait of the oldest queued execution; Δ1m = net change in a minute"),
	}
}

func (q *Queues) previewLines(w, h int) []string {
	row := q.table.Cursor()
	if row < 0 {
		return nil
	}
	e, r := q.env, q.rows[row]
	state, note := q.verdict(r)
	if source := sourceNote(r); source != "" && source != note {
		note = strings.TrimPrefix(note+" · "+source, " · ")
	}
	lines := []string{
		e.Rule("preview: "+screen.QueueName(&r), "queue "+strconv.FormatInt(r.ID, 10)+" · action "+strconv.FormatInt(r.ActionID, 10), w),
		" " + e.State(state) + "  " + widget.Clean(note),
		" waiting " + e.Num(r.Queued) + "   running " + screen.Slots(r.Active, r.Limit) + "   head " + e.AgeOf(r.Oldest) +
			"   ever enqueued " + e.Num(r.Enqueued) + "   ever completed " + e.Num(r.Completed),
	}
	if id := q.Subject(); id != 0 {
		return append(lines, queue.Preview(e, id, w, h-len(lines))...)
	}
	lines = append(lines, "", " "+e.Paint(theme.Dim, "DEPTH, last 60 min"))
	lines = append(lines, widget.Chart(e.Data.History.Trend(screen.QueueSeries(r.ID), time.Hour, min(60, w-10)), min(w, 70), 6, &e.Theme.Glyphs)...)
	return append(lines, " "+e.Paint(theme.Dim, "enter shows its limits, holders and waiters"))
}
