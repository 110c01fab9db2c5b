// Package brokerqueues is the view of the message broker: every queue of the virtual host with its settings and its
// worker, the nodes, and the checks of the routing of dead letters.
//
// Numbers that the broker has not counted are unknown, never zero. If the management interface does not answer, its
// last values stay, greyed with their age.
package brokerqueues

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Broker is the view.
type Broker struct {
	*list.List[row]

	env *screen.Env
}

// row is a queue with its worker, state and problem.
type row struct {
	monitor.BrokerQueue

	worker string // the name of its worker; empty if there is none
	orphan bool   // its worker has no row
	state  string // a state of the theme
	note   string
}

// states are the states of queues with their name in filters and their rank in the order, the worst first.
var states = map[string]struct {
	word string
	rank int
}{
	"failed": {"problem", 0}, "warning": {"warning", 1}, "scheduled": {"uncounted", 2}, "active": {"active", 2},
	"idle": {"idle", 3},
}

var fields = []list.Field[row]{
	list.Sign(func(r *row) string { return r.state }),
	list.Text("QUEUE", 24, named).Grow().Middle().Term("queue", "its name; a star stands for anything").Sort(7, "name"),
	list.Term("state", "its state", func(r *row) string { return states[r.state].word },
		"problem", "warning", "uncounted", "active", "idle").Kind(filter.Word),
	list.Order(1, "problem", func(_ *screen.Env, a, b *row) int {
		return cmp.Or(cmp.Compare(states[a.state].rank, states[b.state].rank),
			monitor.ComparePressing(&a.BrokerQueue, &b.BrokerQueue))
	}),
	list.Term("worker", "its worker", func(r *row) string {
		if r.orphan {
			return "orphan"
		}
		return cmp.Or(r.worker, "none")
	}, "none", "orphan"),
	count("READY", 8, 0, "ready", "messages ready for delivery", 2, func(r *row) int64 { return r.Ready }),
	count("UNACK", 6, 0, "unacked", "delivered messages without an acknowledgement", 3,
		func(r *row) int64 { return r.Unacked }),
	count("CONS", 4, 0, "consumers", "how many consume it", 4, func(r *row) int64 { return r.Consumers }).
		Worry(func(_ *screen.Env, r *row) bool { return r.Consumers == 0 && r.Ready > 0 && !r.Uncounted }),
	speed("IN/s", "in", "messages published per second", 5, func(r *row) *float64 { return r.Published }),
	speed("OUT/s", "out", "messages delivered per second", 6, func(r *row) *float64 { return r.Delivered }),
	list.Text("TYPE", 7, func(r *row) string { return r.Type }).Dim().Priority(6).
		Term("type", "classic, quorum or stream"),
	list.Text("TTL", 4, func(r *row) string { return short(r.TTL) }).Right().Priority(4).
		Known(func(r *row) (float64, bool) {
			n, ok := list.Maybe(r.TTL)
			return n / float64(time.Second), ok
		}).Term("ttl", "after how long its messages expire").Kind(filter.Age),
	list.Text("DLX", 10, func(r *row) string { return exchange(r.DeadLetterExchange, "-") }).Priority(5).
		Texts(func(_ *screen.Env, r *row) []string { return []string{exchange(r.DeadLetterExchange, "none")} }).
		Term("dlx", "its dead-letter exchange", "none"),
	list.Draw("MAX", 6, func(e *screen.Env, r *row) widget.Cell { return widget.Cell{Text: limit(e, r)} }).Right().
		Priority(7).Known(func(r *row) (float64, bool) { return list.Maybe(r.MaxLength) }).
		Term("max", "how many messages it holds at most"),
	list.Text("POLICY", 10, func(r *row) string { return cmp.Or(strings.Join(policies(r), "+"), "-") }).Dim().
		Priority(8).
		Texts(func(_ *screen.Env, r *row) []string {
			if in := policies(r); len(in) > 0 {
				return in
			}
			return []string{"none"}
		}).Term("policy", "the policy in force", "none"),
	list.Draw("WORKER", 14, func(_ *screen.Env, r *row) widget.Cell {
		if r.orphan {
			return widget.Cell{Text: "no row", Role: theme.Bad}
		}
		return widget.Cell{Text: r.worker}
	}).Middle().Priority(2),
	list.Text("NOTE", 24, func(r *row) string { return r.note }).Priority(9).
		In(func(e *screen.Env, r *row) theme.Role { return e.Theme.Of(r.state).Role }).
		Term("note", "its note").Kind(filter.Within),
}

// count is a number of messages or consumers.
func count(title string, width, priority int, term, help string, digit int, of func(*row) int64) list.Field[row] {
	return list.Number(title, width, of).Watch().Priority(priority).
		Drawn(func(e *screen.Env, r *row) widget.Cell {
			return widget.Cell{Text: e.BrokerNum(r.BrokerQueue, of(r))}
		}).
		Known(func(r *row) (float64, bool) { return float64(of(r)), !r.Uncounted }).
		Term(term, help).Sort(digit, term)
}

// speed is a rate in messages per second.
func speed(title, term, help string, digit int, of func(*row) *float64) list.Field[row] {
	return list.Draw(title, 6, func(_ *screen.Env, r *row) widget.Cell { return widget.Cell{Text: rate(of(r))} }).
		Right().Priority(3).
		Known(func(r *row) (float64, bool) { return list.Maybe(of(r)) }).Term(term, help).
		SortBy(digit, term, list.Descending(func(r *row) float64 {
			if n, ok := list.Maybe(of(r)); ok {
				return n
			}
			return -1
		}))
}

func named(r *row) string { return r.BrokerQueue.Name }

func rate(perSecond *float64) string {
	switch {
	case perSecond == nil:
		return widget.Unknown
	case *perSecond >= 100:
		return strconv.FormatFloat(*perSecond, 'f', 0, 64)
	default:
		return strconv.FormatFloat(*perSecond, 'f', 1, 64)
	}
}

func short(d *time.Duration) string {
	if d == nil {
		return "-"
	}
	return widget.Short(*d)
}

func exchange(name *string, none string) string {
	if name == nil {
		return none
	}
	return cmp.Or(*name, "(default)")
}

func policies(r *row) []string {
	return slices.DeleteFunc([]string{r.Policy, r.OperatorPolicy}, func(name string) bool { return name == "" })
}

func limit(e *screen.Env, r *row) string {
	switch {
	case r.MaxLength != nil:
		return e.Num(*r.MaxLength)
	case r.MaxBytes != nil:
		return widget.Bytes(*r.MaxBytes)
	default:
		return "-"
	}
}

// New makes the view.
func New(env *screen.Env) *Broker {
	v := &Broker{env: env}
	v.List = list.New(env, list.Spec[row]{
		View: keymap.InBroker, Title: "Broker", Singular: "queue", Plural: "message broker",
		Feed: screen.FeedBroker, RefreshOn: []screen.Feed{screen.FeedChecks, screen.FeedWorkers},
		MoreFeeds: func() []screen.Feed { return []screen.Feed{screen.FeedChecks, screen.FeedWorkers} },
		Loaded:    func() bool { return env.Data.Broker != nil }, Rows: v.rows, Fields: fields,
		SearchTexts: func(r *row) []string {
			return []string{r.BrokerQueue.Name, r.Type, r.Policy, r.OperatorPolicy, r.worker, r.note}
		},
		Key:       named,
		TieBreak:  func(a, b *row) int { return cmp.Compare(named(a), named(b)) },
		IsProblem: func(r *row) bool { return r.state == "failed" || r.state == "warning" },
		IsIdle:    func(r *row) bool { return r.state == "idle" },
		Header:    v.head, Footer: v.foot, Preview: v.preview,
		EmptyText: []string{
			" The virtual host has no queue yet. A replica declares what it needs:", "   attune-executor serve",
		},
		Open: func(r *row) screen.Effect {
			switch {
			case named(r) == monitor.DeadLetterQueue:
				return screen.Open(keymap.InDeadLetters)
			case r.worker != "":
				return screen.OpenList(keymap.InWorkers, r.worker)
			case r.orphan:
				return screen.Effect{Handled: true, Note: "The worker of this queue has no row."}
			default:
				return screen.Effect{Handled: true, Note: "No other view shows more of this queue."}
			}
		},
		Relations: relations,
		Export:    func(r *row) screen.Thing { return screen.BrokerQueueThing(r.BrokerQueue) },
	})
	return v
}

// rows are the queues of the broker with their states.
func (v *Broker) rows() []row {
	workers, all := map[int64]string{}, false
	if w := v.env.Data.Workers; w != nil {
		all = !w.More
		for i := range w.List {
			workers[w.List[i].ID] = w.List[i].Name
		}
	}
	wrong, queues := v.wrong(), v.env.Data.Broker.Queues
	rows := make([]row, len(queues))
	for i := range queues {
		rows[i] = assess(&queues[i], workers, all, wrong)
	}
	return rows
}

// wrong is the worst failed check of each queue.
func (v *Broker) wrong() map[string]monitor.Check {
	found := map[string]monitor.Check{}
	if v.env.Data.Checks == nil {
		return found
	}
	for _, c := range v.env.Data.Checks.List {
		if c.Status != monitor.CheckProblem && c.Status != monitor.CheckWarning {
			continue
		}
		for _, name := range c.Objects {
			if before, ok := found[name]; !ok || c.Status.Worst() < before.Status.Worst() {
				found[name] = c
			}
		}
	}
	return found
}

// assess finds the worker of a queue and its worst problem. Workers are the known names by id, all of them if all is
// true.
func assess(q *monitor.BrokerQueue, workers map[int64]string, all bool, wrong map[string]monitor.Check) row {
	r := row{BrokerQueue: *q, state: "active"}
	if q.Worker != nil {
		name, ok := workers[*q.Worker]
		r.worker, r.orphan = name, all && !ok
	}
	ours := q.Worker != nil || strings.HasPrefix(q.Name, "attune.")
	check, checked := wrong[q.Name]
	switch {
	case q.Down():
		r.state, r.note = "failed", "the queue is "+q.State
	case r.orphan && q.Ready > 0 && !q.Notices():
		r.state, r.note = "failed", "no worker row: orphan"
	case checked && check.Status == monitor.CheckProblem:
		r.state, r.note = "failed", strings.TrimPrefix(check.Name, "topology.")+": "+check.Text
	case ours && q.TTL != nil && q.DeadLetterExchange == nil && q.Name != monitor.DeadLetterQueue:
		r.state, r.note = "failed", "expired messages are deleted"
	case checked:
		r.state, r.note = "warning", check.Text
	case q.Uncounted:
		r.state, r.note = "scheduled", "not counted yet"
	case q.Name == monitor.DeadLetterQueue && q.Ready > 0 && q.Consumers > 0:
		r.state, r.note = "warning", "dead letters wait"
	case ours && q.Unheard():
		r.state, r.note = "warning", "no consumer"
	case r.orphan && q.Ready > 0:
		r.state, r.note = "idle", "left over, notices about packs"
	case r.orphan:
		r.state, r.note = "idle", "left over, empty"
	case q.Ready > 0 && q.Consumers == 0 && q.Notices():
		r.state, r.note = "idle", "notices about packs, for when its worker runs"
	case q.Idle():
		r.state, r.note = "idle", "unused"
	}
	return r
}

// relations lead from a queue to related items.
func relations(r *row) (title string, related []screen.Relation) {
	name := filter.Quote(named(r))
	none := "it is no queue of a worker"
	if r.orphan {
		none = "its worker has no row"
	}
	worker := screen.Relation{Key: "w", Label: "worker", Not: none}
	executions := screen.Relation{Key: "x", Label: "executions", Not: none}
	if r.worker != "" {
		quoted := filter.Quote(r.worker)
		worker.Leads(r.worker, screen.OpenList(keymap.InWorkers, quoted))
		executions.Leads("assigned to "+r.worker, screen.OpenList(keymap.InExecutions, "worker:"+quoted))
	}
	deadLetters := screen.Relation{
		Key: "d", Label: "dead letters", Help: "from this queue",
		To: screen.OpenList(keymap.InDeadLetters, "queue:"+name),
	}
	if named(r) == monitor.DeadLetterQueue {
		deadLetters.Leads("all", screen.OpenList(keymap.InDeadLetters, ""))
	}
	return named(r), []screen.Relation{
		worker, executions, deadLetters,
		{Key: "n", Label: "alerts", Help: "about this queue", To: screen.OpenList(keymap.InAlerts, name)},
	}
}
