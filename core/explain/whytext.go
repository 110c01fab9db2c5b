package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

// textHolders bounds the named holders.
const textHolders = 5

// NoEngine says that no replica is alive, and what to do.
const NoEngine = "No replica of the engine is alive: start one with `attune-executor serve`."

// tell writes the summary and the lines.
func (w *Why) tell(staleAfter time.Duration) {
	if w.Waiting == nil || w.Queue == nil {
		w.Summary = w.sentence(staleAfter)
		w.Lines = append([]string{w.Summary}, w.extra()...)
		return
	}
	place, about := w.Waiting.Position()
	where := fmt.Sprintf("place %d of %d", place, w.Waiting.Of)
	if about {
		where = "about " + where
	}
	w.Summary = fmt.Sprintf("Execution %d waits in queue %s: %s, %s lane, for %s.",
		w.ID, w.Queue.Name(), where, w.Waiting.Lane, phrase.Since(w.Waiting.Since, w.At))
	w.Lines = append([]string{w.Summary}, w.cause()...)
	w.Lines = append(w.Lines, w.workerLines()...)
	w.Lines = append(w.Lines, holderLines("Its slots are held by", w.Holders)...)
	if w.Scope != nil {
		w.Lines = append(w.Lines, holderLines("The slots of "+w.Scope.Name+" are held by", w.ScopeHolders)...)
	}
	if len(w.Policies) > 0 {
		w.Lines = append(w.Lines, "Policies in force:")
	}
	for _, l := range w.Policies {
		line := phrase.Say("  %s (%s %s): %s; %s", cmp.Or(l.Ref, "no policy"), l.Scope, l.Kind, l.Title(), l.Text)
		if l.Full {
			line.Add(" (full)")
		}
		w.Lines = append(w.Lines, line.String())
	}
	w.Lines = append(w.Lines, w.outlook()...)
}

// cause says what blocks the queue.
func (w *Why) cause() []string {
	q := w.Queue
	lines := []string{limitLine(q)}
	switch {
	case q.Paused:
		lines = append(lines, pauseLine(q, w.At))
	case q.Blocked != "":
		lines = append(lines, blockLine(q, w.Scope, w.At))
		if w.missed != nil {
			lines = append(lines, fmt.Sprintf("%s left %s ago.", w.missed.Name, phrase.Since(w.missed.Seen, w.At)))
		}
	case !q.Full():
		lines = append(lines, "There is a free slot: the engine's next batch fills it.")
	}
	return append(lines, w.engineLines()...)
}

// engineLines say that no replica is alive, or that none may be.
func (w *Why) engineLines() []string {
	switch {
	case w.Replicas != nil && *w.Replicas == 0:
		return []string{NoEngine}
	case w.silent > monitor.ReplicaLate:
		return []string{"The last sign of an engine replica was " + phrase.Span(w.silent.Round(time.Second)) + " ago."}
	default:
		return nil
	}
}

// limitLine says how full the queue is and who set the limit.
func limitLine(q *monitor.Queue) string {
	waits := phrase.Plural(q.Queued, "waits", "wait")
	if q.Limit == nil {
		return fmt.Sprintf("The queue has no limit of its own; %s a slot, %s.",
			phrase.Plural(q.Active, "holds", "hold"), waits)
	}
	from := ""
	switch q.LimitFrom.Kind {
	case monitor.LimitPolicy:
		from = "by policy " + cmp.Or(q.LimitFrom.Policy, "that is gone")
	case monitor.LimitOverride:
		from = "set by an operator"
	case monitor.LimitAdaptive:
		from = "lowered after failures or slow runs"
	}
	if q.LimitFrom.Kind != monitor.LimitPolicy && q.LimitFrom.Threshold != nil {
		from += fmt.Sprintf("; policy %s says %d", q.LimitFrom.Policy, *q.LimitFrom.Threshold)
	}
	switch {
	case q.Active > *q.Limit:
		more := phrase.Plural(*q.Limit, "that is", "that are")
		return fmt.Sprintf("%d run, more than the %s allowed now (limit %s): it drains. %s.", q.Active, more, from,
			waits)
	case *q.Limit == 1:
		return fmt.Sprintf("%d of 1 slot is taken (limit %s), %s.", q.Active, from, waits)
	default:
		return fmt.Sprintf("%d of %d slots are taken (limit %s), %s.", q.Active, *q.Limit, from, waits)
	}
}

func pauseLine(q *monitor.Queue, at time.Time) string {
	return phrase.Say("The queue is paused").With(" by ", q.PausedBy).Since(" for ", q.PausedAt, at).
		With(": ", q.PauseReason).String() + "."
}

func blockLine(q *monitor.Queue, scope *monitor.Scope, at time.Time) string {
	line := phrase.Say("The queue has free slots, but its head ")
	if q.Full() {
		line = phrase.Say("Its head ")
	}
	if q.BlockedSince == nil {
		line.Add("is blocked")
	}
	line.Since("has been blocked for ", q.BlockedSince, at)
	reason := strings.TrimSuffix(q.Blocked, ".")
	if rest, one := strings.CutPrefix(reason, "all 1 slots of "); one { // the reason is stored for any number of slots
		reason = "the only slot of " + strings.Replace(rest, " are taken", " is taken", 1)
	}
	line.With(": ", reason)
	if scope != nil {
		line.Add(" (%s", scope.State(at))
		if !strings.Contains(line.String(), scope.PolicyRef) {
			line.With(", policy ", scope.PolicyRef)
		}
		line.Add(")")
	}
	switch {
	case q.BlockedUntil == nil || !q.BlockedUntil.After(at):
	case q.BlockedScope == nil:
		line.With("; unless one comes back, it fails ", phrase.Clock(*q.BlockedUntil, at))
	default:
		line.With("; it is tried again ", phrase.Clock(*q.BlockedUntil, at))
	}
	return line.String() + "."
}

// holderLines names the oldest holders.
func holderLines(title string, h *monitor.Holders) []string {
	if h == nil || h.Active == 0 {
		return nil
	}
	if len(h.List) == 0 {
		return []string{fmt.Sprintf("%s %s that could not be found within the bound of the search.",
			title, phrase.Plural(h.Active, "execution", "executions"))}
	}
	lines := []string{title + " (the oldest first):"}
	if h.Incomplete {
		lines[0] = fmt.Sprintf("%s (the oldest of %d found, of %d):", title, h.Found, h.Active)
	}
	for _, one := range h.List[:min(len(h.List), textHolders)] {
		line := phrase.Say("  %d %s %s", one.ID, one.ActionRef, one.Status)
		if one.WorkerID != nil {
			line.With(" on ", workerText(&one))
		}
		lines = append(lines, line.String())
	}
	if more := h.Active - int64(min(len(h.List), textHolders)); more > 0 {
		lines = append(lines, "  and "+phrase.Plural(more, "more", "more"))
	}
	return lines
}

// workerText names the worker, its health and the age of its heartbeat.
func workerText(h *monitor.Holder) string {
	name := monitor.WorkerName(h.WorkerID, h.WorkerName)
	switch {
	case h.Health == "":
		return name + " (not registered any more)"
	case h.HeartbeatAge == nil:
		return fmt.Sprintf("%s (%s, no heartbeat ever)", name, h.Health)
	default:
		return fmt.Sprintf("%s (%s, heartbeat %s ago)", name, h.Health, phrase.Span(*h.HeartbeatAge))
	}
}

// Outlook says when something is expected, or why that is unknown.
func Outlook(e Expected, at time.Time) string {
	if e.At == nil {
		return e.Basis
	}
	return phrase.Say("%s", phrase.Clock(*e.At, at)).With(", ", e.Basis).String()
}

// outlook says when the execution will start or time out.
func (w *Why) outlook() []string {
	var lines []string
	var fails *time.Time // because no worker comes back
	if w.Queue.BlockedScope == nil && !w.Queue.Paused {
		fails = w.Queue.BlockedUntil
	}
	e := w.Expected
	if e != nil && e.At != nil {
		lines = append(lines, "Expected to start "+Outlook(*e, w.At)+".")
	} else if e != nil {
		lines = append(lines, "When it starts is "+e.Basis+".")
	}
	switch expires := w.Waiting.Expires; {
	case expires != nil && fails != nil && expires.Before(*fails):
		lines = append(lines, "Before it fails without a worker, "+phrase.Clock(*expires, w.At)+", it times out.")
	case fails != nil:
	case expires != nil && e != nil && e.At != nil && e.At.After(*expires):
		lines = append(lines,
			"Before that, "+phrase.Clock(*expires, w.At)+", it times out.")
	case expires != nil:
		lines = append(lines, "If it still waits "+phrase.Clock(*expires, w.At)+", it times out.")
	case w.Queue.QueueTimeout > 0 && w.Queue.Paused:
		lines = append(lines,
			"While the queue is paused it does not time out; then it may wait for "+phrase.Span(w.Queue.QueueTimeout)+
				".")
	}
	return lines
}

// extra are further lines about an execution outside a queue.
func (w *Why) extra() []string {
	ended := lifecycle.Status(w.Status).Terminal()
	var lines []string
	add := func(when bool, more ...string) {
		if when {
			lines = append(lines, more...)
		}
	}
	add(w.Unknown != "", "The queue is unknown: "+w.Unknown+".")
	add(w.holds && ended, "Its slot is not released yet: the engine releases it when it processes the end.")
	add(w.inLine, "It still has a place in the queue, which the engine's next batch removes.")
	add(!ended || w.holds, w.engineLines()...)
	if w.Status == string(lifecycle.StatusAbandoned) && w.WorkerID != nil {
		killed := strings.Contains(w.Reason+w.refusal, "the worker's process ended")
		add(killed,
			"The action was killed with the worker, but a process that it started in a session of its own (setsid) "+
				"may still run there.")
		add(!killed, "The action may still run there: its worker has sent nothing since.")
	}
	add(true, w.workerLines()...)
	if w.Queue != nil && w.holds && !ended {
		line := phrase.Say("It holds a slot of queue %s.", w.Queue.Name())
		if w.admittedAt != nil {
			line.Add(" It waited %s for it.", phrase.Span(max(w.admittedAt.Sub(w.Created), 0)))
		}
		add(true, line.String())
	}
	return lines
}

// sentence says what an execution outside a queue does.
func (w *Why) sentence(staleAfter time.Duration) string {
	name := fmt.Sprintf("Execution %d of %s", w.ID, w.ActionRef)
	on := "no worker"
	if w.WorkerID != nil {
		on = "worker " + cmp.Or(w.WorkerName, fmt.Sprint(*w.WorkerID))
	}
	updated := phrase.Since(w.Updated, w.At)
	switch status := lifecycle.Status(w.Status); status {
	case lifecycle.StatusRequested:
		if w.Retry != nil {
			return name + " " + w.Retry.sentence(w.At)
		}
		return name + " " + w.requested()
	case lifecycle.StatusScheduling:
		return fmt.Sprintf("%s is being handed to a worker, for %s.", name, updated)
	case lifecycle.StatusScheduled:
		return fmt.Sprintf("%s was handed to %s %s ago, which has not picked it up yet.%s%s",
			name, on, updated, w.unwell(staleAfter), w.given(staleAfter))
	case lifecycle.StatusRunning:
		from := w.Updated
		if w.StartedAt != nil {
			from = *w.StartedAt
		}
		if w.workflow {
			return fmt.Sprintf("%s is a workflow and runs for %s; what it waits for is shown by workflow show %d.",
				name, phrase.Since(from, w.At), w.ID)
		}
		return fmt.Sprintf("%s runs on %s, for %s.%s", name, on, phrase.Since(from, w.At), w.unwell(staleAfter))
	case lifecycle.StatusCanceling:
		return fmt.Sprintf("%s is being cancelled on %s, for %s.%s", name, on, updated, w.unwell(staleAfter))
	default:
		return name + " " + w.ended(status)
	}
}

// requested says why a requested execution is in no queue.
func (w *Why) requested() string {
	text := "was requested " + phrase.Since(w.Created, w.At) + " ago"
	switch {
	case w.Unknown != "":
		return text + "; where it waits is not known."
	case w.Replicas != nil && *w.Replicas == 0:
		return text + " and is in no queue yet."
	case w.workflow:
		return text + ", and workflows have no queue: the engine has not processed its message."
	default:
		return text + " and is in no queue yet: the engine has not processed its message; it finds lost messages about " +
			"half a minute after the request."
	}
}

// refusals are the errors of executions that the engine did not admit.
var refusals = map[string]string{
	"Queue full": "was refused", "policy violation": "was refused", "Queue timeout": "was given up",
}

// endings say how an execution ended.
var endings = map[lifecycle.Status]string{
	lifecycle.StatusCompleted: "completed", lifecycle.StatusFailed: "failed",
	lifecycle.StatusCancelled: "was cancelled",
	lifecycle.StatusTimeout:   "took too long and ended", lifecycle.StatusAbandoned: "was abandoned",
}

// ended says how an execution ended, and how long it took.
func (w *Why) ended(status lifecycle.Status) string {
	at := w.Updated
	if w.FinishedAt != nil {
		at = *w.FinishedAt
	}
	reason, _, _ := strings.Cut(w.refusal, " (")
	if word, ok := refusals[reason]; ok {
		text := phrase.Say("%s %s: %s", word, phrase.Clock(at, w.At), w.refusal)
		if w.Reason != w.refusal {
			text.With(", ", w.Reason)
		}
		return text.Sentence()
	}
	text := phrase.Say("%s %s", cmp.Or(endings[status], "is "+string(status)+" since"), phrase.Clock(at, w.At))
	if w.StartedAt != nil {
		text.Add(" after running for %s", phrase.Span(max(at.Sub(*w.StartedAt), 0)))
	}
	return text.With(": ", w.Reason).Sentence()
}

// given says what happens if its worker does not start it.
func (w *Why) given(staleAfter time.Duration) string {
	every := ""
	if w.checks > 0 {
		every = " (every " + phrase.Span(w.checks) + ")"
	}
	next := "the engine's next check" + every + " gives the execution to another worker, or closes and repeats it."
	switch h := w.worker; {
	case h == nil:
		return ""
	case w.checks < 0:
		return " It stays there: executor.enable_timeout_monitor is off, so the engine does not look for work that has not begun."
	case h.HeartbeatAge == nil || *h.HeartbeatAge > staleAfter:
		return " Unless it comes back, " + next
	case w.allowed > 0:
		return fmt.Sprintf(" If it has not begun %s, or if the worker sends no heartbeat for %s, %s "+
			"A worker that runs all it can keeps it while no other has room.",
			phrase.Clock(w.Updated.Add(w.allowed), w.At), phrase.Span(staleAfter), next)
	default:
		gone := phrase.Clock(w.At.Add(staleAfter-*h.HeartbeatAge), w.At)
		return " If no heartbeat comes, the worker counts as gone " + gone + ", and " + next
	}
}

// unwell says what is wrong with its worker.
func (w *Why) unwell(staleAfter time.Duration) string {
	h := w.worker
	switch {
	case h == nil, h.Health == monitor.WorkerActive, h.Health == monitor.WorkerBusy:
		return ""
	case h.Health == monitor.WorkerStale && h.HeartbeatAge != nil:
		return fmt.Sprintf(" The worker's last heartbeat was %s ago (limit %s).",
			phrase.Span(*h.HeartbeatAge), phrase.Span(staleAfter))
	default:
		return " The worker is " + string(cmp.Or(h.Health, "not registered any more")) + "."
	}
}
