package app

import (
	"cmp"
	"strings"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

const (
	tabLine     = 1
	topLines    = 3
	bottomLines = 2
	minWidth    = 60
	minHeight   = 15
	toastTime   = 4 * time.Second
)

// View draws the frame: as many lines as the window has, none wider than it. It changes nothing.
func (m *Model) View() string {
	if m.width <= 0 || m.height <= 0 {
		return ""
	}
	lines := widget.Wrap("attune-tui needs 60×15; this is smaller. q quits.", m.width)
	if !m.tooSmall() {
		f := m.compose()
		lines = append([]string{m.header(f.armed), m.tabBar(), m.titleRule(f.left, f.right)}, f.body...)
		lines = append(lines, f.message, f.keys)
	}
	return m.env.Theme.Finish(strings.Join(widget.Fit(lines, m.width, m.height), "\n"))
}

func (m *Model) bodyHeight() int { return m.height - topLines - bottomLines }

// tooSmall reports whether the window has no room for a body.
func (m *Model) tooSmall() bool { return m.width < minWidth || m.height < minHeight }

// body draws the open view, in grey if its source does not answer.
func (m *Model) body(w, h int) []string {
	if m.neverAnswered() {
		return m.firstRun(w)
	}
	lines, fresh := m.screen().Render(w, h), m.env.Data.Fresh(m.mainFeed())
	if fresh.Err == nil || fresh.At.IsZero() {
		return lines
	}
	return widget.Fade(lines, m.env.Theme)
}

// mainFeed is the feed of most of the open view.
func (m *Model) mainFeed() screen.Feed {
	if feeds := m.screen().Feeds(); len(feeds) > 0 {
		return feeds[0]
	}
	return screen.FeedOverview
}

func (m *Model) wide() bool { return m.width >= 120 }

// header is the first line: the installation and the state of its sources.
func (m *Model) header(armed bool) string {
	e := m.env
	left := " " + e.Paint(theme.Strong, "ATTUNE") + " " + m.contextName() + " " + m.mode(armed) + "  " +
		m.sourceState("PG", screen.FeedOverview) + "  " + m.sourceState("MQ", screen.FeedBroker)
	right, pace, clock := m.alarms(), "  "+m.pace(), "  "+m.now().UTC().Format("15:04:05Z")+" "
	if m.width < wideTabs && !m.paused && m.heldFor() == 0 { // the least important part
		pace = ""
	}
	left += pace
	if m.wide() {
		lastOK := widget.Unknown
		if at := e.Data.Fresh(m.mainFeed()).At; !at.IsZero() {
			lastOK = at.Add(m.env.Skew).UTC().Format("15:04:05Z")
		}
		right += "   last ok " + lastOK
		if m.synced && (m.env.Skew > time.Second || m.env.Skew < -time.Second) {
			right += "  skew " + m.env.Skew.Round(100*time.Millisecond).String()
		}
	}
	room := m.width - 1 - widget.Width(left) - widget.Width(right)
	if widget.Width(clock) > room {
		clock = "  " + m.now().UTC().Format("15:04Z")
	}
	if widget.Width(clock) > room {
		clock = ""
	}
	return widget.Spread(left, right+clock, m.width)
}

// contextName is the name of the installation in its colour. A protected one has a mark in every theme.
func (m *Model) contextName() string {
	longest := 20
	if m.width < wideTabs { // the number of alerts needs the room
		longest = 12
	}
	name := widget.CutMiddle(widget.Clean(cmp.Or(m.opts.Context, "default")), longest)
	role, mark := theme.Accent, ""
	if m.opts.Protected {
		role, mark = theme.Warn, m.env.Paint(theme.Warn, "!")
	}
	if m.opts.Colour != "" {
		return m.env.Theme.Colour(m.opts.Colour, name) + mark
	}
	return m.env.Paint(role, name) + mark
}

// sourceState is the latency of a source, or since when it does not answer.
func (m *Model) sourceState(name string, feed screen.Feed) string {
	e := m.env
	fresh := e.Data.Fresh(feed)
	switch condition, age := e.Data.Condition(feed, e.Clock), "~"+widget.Short(e.Clock.Sub(fresh.At)); {
	case condition == screen.Waiting:
		return name + " " + e.Paint(theme.Dim, "◌ --")
	case condition == screen.Unreachable && feed == screen.FeedBroker && e.BrokerWorks():
		return name + " " + e.Paint(theme.Warn, "? unread "+widget.Short(e.Clock.Sub(fresh.Since)))
	case condition == screen.Unreachable:
		return name + " " + e.Paint(theme.Bad, "✗ down "+widget.Short(e.Clock.Sub(fresh.Since)))
	case feed == screen.FeedBroker && e.Data.Overview.CutOff():
		return name + " " + e.Paint(theme.Bad, "✗ no replica connected")
	case m.paused: // the source answers, and the data has this age
		return name + " " + e.Paint(theme.Warn, e.Theme.Glyphs.Frozen+" "+age)
	case condition == screen.Old:
		return name + " " + e.Paint(theme.Warn, "◐ "+age)
	}
	dot := e.Theme.Glyphs.OK
	if m.chain(feed).busy {
		dot = e.Theme.Glyphs.Busy
	}
	return name + " " + e.Paint(theme.Good, dot) + " " + widget.Latency(fresh.Took)
}

func (m *Model) pace() string {
	switch {
	case m.paused:
		return m.env.Paint(theme.Warn, m.env.Theme.Glyphs.Frozen+" FROZEN")
	case m.heldFor() > 0:
		return m.env.Paint(theme.Warn, m.env.Theme.Glyphs.Frozen+" held "+widget.Short(m.heldFor()))
	case m.blurred:
		return "poll " + m.wanted(screen.FeedOverview).String() + " (no focus)"
	default:
		return "poll " + m.refreshEvery.String()
	}
}

// heldFor is how long a dialog has held back newer answers, also from the header; zero within two polls.
func (m *Model) heldFor() time.Duration {
	if held := m.now().Sub(m.env.Now); m.modal() && held > 2*m.refreshEvery+time.Second {
		return held
	}
	return 0
}

// loud counts the findings that are not muted, and the muted ones.
func (m *Model) loud() (critical, warning, muted int) {
	found, muted := m.env.Loud(m.env.Findings())
	for _, f := range found {
		switch f.Level {
		case alerting.LevelCritical:
			critical++
		case alerting.LevelWarning:
			warning++
		}
	}
	return critical, warning, muted
}

// alarms shows the numbers of findings, also of muted ones.
func (m *Model) alarms() string {
	e := m.env
	critical, warning, muted := m.loud()
	one := func(role theme.Role, glyph string, n int, word string) string {
		if n == 0 {
			role = theme.Dim
		}
		text := glyph + e.Num(int64(n))
		if m.wide() {
			text = glyph + " " + e.Num(int64(n)) + " " + word
		}
		return e.Paint(role, text)
	}
	text := one(theme.Bad, "■", critical, "crit") + " " + one(theme.Warn, "▲", warning, "warn")
	if muted > 0 {
		text += " " + one(theme.Plain, e.Theme.Glyphs.Paused, muted, "muted")
	}
	return text
}

// tab is a view in the second line, with its cells.
type tab struct {
	view     screen.View
	text     string
	from, to int
}

// longTabs is the least width with full names of views.
const longTabs = 118

// wideTabs is the least width with names of all views and the interval of polls.
const wideTabs = 80

func (m *Model) tabs() []tab {
	at := 0
	tabs := make([]tab, len(Views))
	for i, view := range Views {
		v := keymap.ViewOf(view)
		name := v.Digit + " " + v.Short
		switch {
		case m.width >= longTabs:
			name = v.Digit + " " + v.Tab
		case m.width < wideTabs && !m.tabOpen(view):
			name = v.Digit
		}
		name += m.tabBadge(view)
		text := " " + name + " "
		if m.tabOpen(view) {
			text = "[" + name + "]"
		}
		tabs[i] = tab{view: view, text: text, from: at, to: at + widget.Width(text)}
		at = tabs[i].to
	}
	return tabs
}

// tabBadge is the number of waiting items in a view, or empty.
func (m *Model) tabBadge(view screen.View) string {
	e := m.env
	switch view {
	case keymap.InDeadLetters:
		if q, ok := e.Data.Broker.Queue(monitor.DeadLetterQueue); ok && q.Ready > 0 {
			return " " + e.Num(q.Ready) + e.Mark(screen.FeedBroker)
		}
	case keymap.InInquiries:
		if o := e.Data.Overview; o != nil && o.Flows != nil && o.Flows.Inquiries.Value != 0 {
			return " " + e.Count(o.Flows.Inquiries) + e.Mark(screen.FeedOverview)
		}
	case keymap.InAlerts:
		if critical, warning, _ := m.loud(); critical+warning > 0 {
			return " " + e.Num(int64(critical+warning)) + e.Mark(screen.FeedOverview)
		}
	}
	return ""
}

// listOf maps a view of one thing to its list.
var listOf = map[screen.View]screen.View{
	keymap.InExecution: keymap.InExecutions, keymap.InQueue: keymap.InQueues, keymap.InWorker: keymap.InWorkers,
	keymap.InDeadLetter: keymap.InDeadLetters,
}

func (m *Model) tabOpen(view screen.View) bool { return view == m.view || view == listOf[m.view] }

func (m *Model) tabBar() string {
	var b strings.Builder
	for _, t := range m.tabs() {
		if m.tabOpen(t.view) {
			b.WriteString(m.env.Paint(theme.Accent, t.text))
		} else {
			b.WriteString(t.text)
		}
	}
	return widget.Spread(b.String(), m.env.Paint(theme.Dim, "?help "), m.width)
}

// titleRule is the third line: what is shown, its order and its age.
func (m *Model) titleRule(left, right string) string {
	e, stale := m.env, m.stale()
	left = widget.Cut(widget.Clean(left), max(8, m.width-widget.Width(stale)-8))
	if list, ok := m.screen().(screen.Listed); ok && list.Len() == 0 && stale == "" {
		right = "read " + widget.Short(e.Clock.Sub(e.Data.Fresh(m.mainFeed()).At)) + " ago · " + right
	}
	right = strings.TrimSuffix(widget.Clean(right), " · ")
	if stale != "" && right != "" {
		right = " · " + right
	}
	right = widget.Cut(right, max(0, m.width-widget.Width(left)-widget.Width(stale)-8))
	panes, several := m.screen().(screen.Paned)
	role := screen.Lit(several && panes.InFirst())
	if right = e.Paint(theme.Warn, stale) + e.Paint(role, right); right != "" {
		right = " " + right + e.Paint(role, " ─")
	}
	fill := m.width - widget.Width(left) - widget.Width(right) - 3
	if fill < 0 {
		return e.Paint(role, widget.Cut("─ "+left, m.width))
	}
	return e.Paint(role, "─ ") + e.Paint(theme.Strong, left) + e.Paint(role, " "+strings.Repeat("─", fill)) + right
}

// stale names the readings of the open view that failed or are older than two polls, with their ages. An old view
// stands for all of its parts.
func (m *Model) stale() string {
	var parts []string
	for i, name := range m.screen().Feeds() {
		about := ""
		if i > 0 {
			about = feedWord(name) + " "
		}
		fresh := m.env.Data.Fresh(name)
		age := widget.Age(m.env.Clock.Sub(fresh.At))
		switch condition := m.env.Data.Condition(name, m.env.Clock); {
		case condition == screen.Unreachable && fresh.At.IsZero():
			parts = append(parts, "? "+about+"not read")
		case condition == screen.Unreachable:
			parts = append(parts, "? "+about+"last read "+age+" ago")
		case condition == screen.Old:
			parts = append(parts, about+age+" old")
		}
		if i == 0 && len(parts) > 0 {
			break
		}
	}
	return strings.Join(parts, " · ")
}

// messageLine is a message, the trouble of a source, or a hint.
func (m *Model) messageLine() string {
	if m.toast != "" && m.env.Clock.Sub(m.toastAt) < toastTime {
		return " " + widget.Clean(m.toast)
	}
	note, trouble := m.exportNote()+m.markingNote()+m.listNote(), m.trouble()
	switch {
	case note == "" && trouble == "":
		return m.hintLine()
	case note == "":
		return trouble
	}
	return " " + note + trouble
}

// trouble names the sources that do not answer, or else the first reading of the open view that failed.
func (m *Model) trouble() string {
	e := m.env
	var parts []string
	add := func(feed screen.Feed, what string) {
		if fresh := e.Data.Fresh(feed); fresh.Err != nil {
			since := fresh.Since.Add(e.Skew).UTC().Format("15:04:05Z")
			parts = append(parts, what+widget.Clean(fresh.Err.Error())+" (since "+since+")")
		}
	}
	add(screen.FeedOverview, "")
	add(screen.FeedBroker, "")
	for i, feed := range m.screen().Feeds() {
		what := "this view"
		if i > 0 {
			what = "the " + feedWord(feed)
		}
		if len(parts) == 0 {
			add(feed, what+" cannot be read: ")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return e.Paint(theme.Bad, widget.Cut(" ✗ "+strings.Join(parts, " · "), m.width))
}

// keysOf writes as many key hints as fit, and always the last one.
func (m *Model) keysOf(bindings []keymap.Binding) string {
	if len(bindings) == 0 {
		return ""
	}
	last := bindings[len(bindings)-1]
	end := " " + m.keyHint(last.Show, last.Short) + " "
	line := ""
	for _, b := range bindings[:len(bindings)-1] {
		next := " " + m.keyHint(b.Show, b.Short) + " "
		if widget.Width(line)+widget.Width(next)+widget.Width(end) > m.width {
			break
		}
		line += next
	}
	return line + end
}

func (m *Model) keyHint(key, word string) string {
	return m.env.Paint(theme.Accent, key) + " " + word
}
