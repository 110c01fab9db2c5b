package explain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

// Section is a part of a detail: rows of cells below a title.
type Section struct {
	// Title is empty for the first part.
	Title string
	Rows  [][]string
}

// Sections writes the detail for people, the same for commands and dashboard.
func (d *QueueDetail) Sections() []Section {
	switch {
	case d.Together != nil && d.Queued+d.Active == 0:
		return d.groupsFirst()
	case !d.Exists && d.Group != "":
		return d.without([]Section{{Rows: [][]string{
			{"queue", d.Name()}, {"state", "no execution of this group has been requested yet"},
		}}})
	case !d.Exists:
		return d.without([]Section{{Rows: [][]string{
			{"queue", d.ActionRef}, {"state", "no execution of this action has been requested yet"},
		}}})
	}
	list := []Section{{Rows: d.head()}}
	list = append(list, d.holderSections()...)
	list = d.without(list)
	list = append(list, d.timingSection(), d.agesSection())
	if len(d.Groups) > 0 {
		list = append(list, d.groupSection())
	}
	var out []Section
	for _, s := range list {
		if len(s.Rows) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// groupsFirst describes an action with queues for its groups.
func (d *QueueDetail) groupsFirst() []Section {
	head := [][]string{
		{"action", d.ActionRef},
		{"queues", fmt.Sprintf("%s, one for each %s", phrase.Plural(d.Together.Groups, "group", "groups"),
			strings.Join(d.GroupedBy, ", "))},
		{"waiting", strconv.FormatInt(d.Together.Queued, 10)},
		{"running", strconv.FormatInt(d.Together.Active, 10)},
	}
	if d.Paused {
		head = append(head,
			[]string{"state", strings.Replace(pauseLine(&d.Queue, d.At), "The queue is", "The action is", 1)})
	}
	list := []Section{{Rows: head}}
	if len(d.Groups) > 0 {
		busiest := d.groupSection()
		busiest.Title = "the busiest groups"
		group := d.Groups[0].Group
		look := "attune-executor queue show " + d.ActionRef + " --group '" + strings.ReplaceAll(group, "'", `'\''`) +
			"'"
		list = append(list, busiest, Section{Title: "one of them", Rows: [][]string{{look}}})
	}
	return d.without(list)
}

// without appends the parts that need no queue.
func (d *QueueDetail) without(list []Section) []Section {
	if len(d.Policies) == 0 {
		return list
	}
	s := Section{Title: "policies in force"}
	for _, l := range d.Policies {
		text := l.Text
		if l.Full {
			text += " (full)"
		}
		s.Rows = append(s.Rows, []string{cmp.Or(l.Ref, "-"), l.Scope + " " + l.Kind, l.Title(), text})
	}
	return append(list, s)
}

func (d *QueueDetail) head() [][]string {
	rows := [][]string{
		{"queue", fmt.Sprintf("%d %s", d.ID, d.Name())},
		{"state", d.StateLine()},
		{"limit", limitLine(&d.Queue)},
		{"waiting", d.lanesLine()},
		{"ever", fmt.Sprintf("%d enqueued, %d completed", d.Enqueued, d.Completed)},
	}
	if d.Oldest != nil {
		rows = append(rows, []string{"oldest", "waits for " + phrase.Since(*d.Oldest, d.At)})
	}
	rows = append(rows, []string{"bounds", d.waitLimits()})
	if d.Drain.PerMinute != nil {
		rows = append(rows,
			[]string{"drains", new(phrase.Text).Add("%s", pace(*d.Drain.PerMinute)).With(", ", d.Drain.Basis).String()})
	} else {
		rows = append(rows, []string{"drains", "unknown: " + d.Drain.Basis})
	}
	if d.TimingOut != nil {
		rows = append(rows, []string{"time out", d.TimingOut.String(d.At)})
	}
	if d.Empties.At != nil {
		rows = append(rows, []string{"empty", Outlook(d.Empties, d.At) + " if no execution joins"})
	} else if d.Queued > 0 {
		rows = append(rows, []string{"empty", d.Empties.Basis})
	}
	return rows
}

// StateLine says in one sentence whether the queue moves, and if not why; in a second one what will time out.
func (d *QueueDetail) StateLine() string {
	if d.TimingOut.Threatened() {
		return fmt.Sprintf("%s %s", d.moves(), phrase.Say("About %d of %d will time out before they start, the first %s",
			*d.TimingOut.Count, d.TimingOut.Of, phrase.Clock(*d.TimingOut.First, d.At)).Sentence())
	}
	return d.moves()
}

func (d *QueueDetail) moves() string {
	switch {
	case d.Paused:
		return pauseLine(&d.Queue, d.At)
	case d.Blocked != "":
		return blockLine(&d.Queue, d.Scope, d.At)
	case d.Queued > 0 && d.Full():
		return "The waiting executions need a slot."
	case d.Queued > 0:
		return "There is a free slot: the engine's next batch fills it."
	case d.Active > 0:
		return "No execution waits."
	default:
		return "Idle."
	}
}

func (d *QueueDetail) lanesLine() string {
	if d.QueuedHigh == 0 && d.QueuedLow == 0 {
		return strconv.FormatInt(d.Queued, 10)
	}
	return fmt.Sprintf("%d: %d high, %d normal, %d low", d.Queued, d.QueuedHigh, d.Queued-d.QueuedHigh-d.QueuedLow,
		d.QueuedLow)
}

func (d *QueueDetail) waitLimits() string {
	text := "any number may wait"
	if d.MaxQueued != nil {
		text = fmt.Sprintf("%d may wait", *d.MaxQueued)
	}
	if d.QueueTimeout > 0 {
		return text + ", each for " + phrase.Span(d.QueueTimeout)
	}
	return text + ", for ever"
}

func (d *QueueDetail) holderSections() []Section {
	list := []Section{holderSection("holders of its slots", d.Holders, d.At)}
	if d.Scope != nil && d.ScopeHolders != nil {
		list = append(list, holderSection("holders of the slots of "+d.Scope.Name, d.ScopeHolders, d.At))
	}
	return list
}

func holderSection(title string, h *monitor.Holders, at time.Time) Section {
	s := Section{Title: title}
	if h == nil || h.Active == 0 {
		return s
	}
	if h.Incomplete {
		s.Title += fmt.Sprintf(" (the oldest of %d found, of %d)", h.Found, h.Active)
	}
	for _, one := range h.List {
		worker := "-"
		if one.WorkerID != nil {
			worker = workerText(&one)
		}
		s.Rows = append(s.Rows,
			[]string{strconv.FormatInt(one.ID, 10), one.ActionRef, one.Status, phrase.Span(one.Lasted(at)), worker})
	}
	if more := h.Active - int64(len(h.List)); more > 0 {
		s.Rows = append(s.Rows, []string{"and " + phrase.Plural(more, "more", "more")})
	}
	return s
}

func (d *QueueDetail) timingSection() Section {
	t := d.Timing
	if t.Sample == 0 {
		return Section{}
	}
	s := Section{
		Title: fmt.Sprintf("times of the last %s, admitted within %s",
			phrase.Plural(t.Sample, "execution", "executions"), phrase.Span(d.At.Sub(*t.From))),
		Rows: [][]string{{"", "P50", "P90", "P95", "P99", "MAX", "OF"}},
	}
	for _, one := range []struct {
		name string
		p    *monitor.Percentiles
	}{{"wait", t.Wait}, {"run", t.Run}} {
		if one.p == nil {
			continue
		}
		s.Rows = append(s.Rows, []string{
			one.name, phrase.Span(one.p.P50), phrase.Span(one.p.P90), phrase.Span(one.p.P95), phrase.Span(one.p.P99),
			phrase.Span(one.p.Max), strconv.FormatInt(one.p.Count, 10),
		})
	}
	return s
}

func (d *QueueDetail) agesSection() Section {
	if d.Queued == 0 || d.Ages == nil {
		return Section{}
	}
	s := Section{Title: "waiting executions by age"}
	if d.Ages.Estimated {
		s.Title += fmt.Sprintf(" (estimated from %d of them)", d.Ages.Probes)
	}
	var names, counts []string
	for i, n := range d.Ages.Classes {
		name := "longer"
		if i < len(monitor.AgeBounds) {
			name = "<" + phrase.Span(monitor.AgeBounds[i])
		}
		names, counts = append(names, strings.ToUpper(name)), append(counts, strconv.FormatInt(n, 10))
	}
	s.Rows = [][]string{names, counts}
	return s
}

func (d *QueueDetail) groupSection() Section {
	s := Section{
		Title: "other queues of " + d.ActionRef,
		Rows:  [][]string{{"ID", "GROUP", "QUEUED", "ACTIVE", "LIMIT", "STATE"}},
	}
	for _, q := range d.Groups {
		limit := "none"
		if q.Limit != nil {
			limit = strconv.FormatInt(*q.Limit, 10)
		}
		s.Rows = append(s.Rows, []string{
			strconv.FormatInt(q.ID, 10), cmp.Or(q.Group, "(the action's own)"), strconv.FormatInt(q.Queued, 10),
			strconv.FormatInt(q.Active, 10), limit,
			q.State(),
		})
	}
	if d.MoreGroups {
		s.Rows = append(s.Rows, []string{"and more"})
	}
	return s
}
