package explain

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

// textHolders is how many holders the sentences name.
const textHolders = 5

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
	w.Lines = append(w.Lines, policyLines(w.Policies)...)
	w.Lines = append(w.Lines, w.outlook()...)
}

// cause says what keeps the queue.
func (w *Why) cause() []string {
	q := w.Queue
	lines := []string{limitLine(q)}
	switch {
	case q.Paused:
		lines = append(lines, pauseLine(q, w.At))
	case q.Blocked != "":
		lines = append(lines, blockLine(q, w.Scope, w.At))
	case !q.Full():
		lines = append(lines, "There is room: the next batch of the engine fills it.")
	}
	return append(lines, w.engineLines()...)
}

// engineLines say that no replica of the engine is alive, or that none may be.
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

// NoEngine says that no replica of the engine is alive, and what to do.
const NoEngine = "No replica of the engine is alive: start one with `attune-executor serve`."

// limitLine says how full the queue is and who says so.
func limitLine(q *monitor.Queue) string {
	if q.Limit == nil {
		return fmt.Sprintf("The queue has no limit of its own; %s a slot, %s.", phrase.Plural(q.Active, "holds", "hold"), phrase.Plural(q.Queued, "waits", "wait"))
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
	waits := phrase.Plural(q.Queued, "waits", "wait")
	switch {
	case q.Active > *q.Limit:
		more := phrase.Plural(*q.Limit, "that is", "that are")
		return fmt.Sprintf("%d run, more than the %s allowed now (limit %s): it drains. %s.", q.Active, more, from, waits)
	case *q.Limit == 1:
		return fmt.Sprintf("%d of 1 slot is taken (limit %s), %s.", q.Active, from, waits)
	default:
		return fmt.Sprintf("%d of %d slots are taken (limit %s), %s.", q.Active, *q.Limit, from, waits)
	}
}

func pauseLine(q *monitor.Queue, at time.Time) string {
	line := "The queue is paused"
	if q.PausedBy != "" {
		line += " by " + q.PausedBy
	}
	if q.PausedAt != nil {
		line += " for " + phrase.Since(*q.PausedAt, at)
	}
	if q.PauseReason != "" {
		line += ": " + q.PauseReason
	}
	return line + "."
}

func blockLine(q *monitor.Queue, scope *monitor.Scope, at time.Time) string {
	line := "The queue has room of its own, but its head "
	if q.Full() {
		line = "Besides, its head "
	}
	if q.BlockedSince != nil {
		line += "has been kept for " + phrase.Since(*q.BlockedSince, at)
	} else {
		line += "is kept"
	}
	line += ": " + singular(strings.TrimSuffix(q.Blocked, "."))
	if scope != nil {
		line += " (" + scope.State(at)
		if !strings.Contains(line, scope.PolicyRef) {
			line += ", policy " + scope.PolicyRef
		}
		line += ")"
	}
	if q.BlockedUntil != nil && q.BlockedUntil.After(at) {
		line += "; it is tried again " + phrase.Clock(*q.BlockedUntil, at)
	}
	return line + "."
}

// singular puts right what was written down for any number of slots.
func singular(reason string) string {
	if rest, ok := strings.CutPrefix(reason, "all 1 slots of "); ok {
		return "the only slot of " + strings.Replace(rest, " are taken", " is taken", 1)
	}
	return reason
}

// holderLines names the oldest holders.
func holderLines(title string, h *monitor.Holders) []string {
	if h == nil || h.Active == 0 {
		return nil
	}
	if len(h.List) == 0 {
		return []string{fmt.Sprintf("%s %s that could not be found within the bound of the search.", title, phrase.Plural(h.Active, "execution", "executions"))}
	}
	lines := []string{title + " (the oldest first):"}
	if h.Incomplete {
		lines[0] = fmt.Sprintf("%s (the oldest of %d found, of %d):", title, h.Found, h.Active)
	}
	for _, one := range h.List[:min(len(h.List), textHolders)] {
		lines = append(lines, "  "+holderLine(&one))
	}
	if more := h.Active - int64(min(len(h.List), textHolders)); more > 0 {
		lines = append(lines, "  and "+phrase.Plural(more, "more", "more"))
	}
	return lines
}

func holderLine(h *monitor.Holder) string {
	text := fmt.Sprintf("%d %s %s", h.ID, h.ActionRef, h.Status)
	if h.WorkerID == nil {
		return text
	}
	return text + " on " + workerText(h)
}

// workerText names the worker, its health and the age of its heartbeat.
func workerText(h *monitor.Holder) string {
	name := cmp.Or(h.WorkerName, fmt.Sprintf("worker %d", *h.WorkerID))
	switch {
	case h.Health == "":
		return name + " (not registered any more)"
	case h.HeartbeatAge == nil:
		return fmt.Sprintf("%s (%s, no heartbeat ever)", name, h.Health)
	default:
		return fmt.Sprintf("%s (%s, heartbeat %s ago)", name, h.Health, phrase.Span(*h.HeartbeatAge))
	}
}

func policyLines(list []monitor.PolicyLine) []string {
	if len(list) == 0 {
		return nil
	}
	lines := []string{"Policies in force:"}
	for _, l := range list {
		mark := ""
		if l.Full {
			mark = " (full)"
		}
		lines = append(lines, fmt.Sprintf("  %s (%s %s): %s; %s%s", cmp.Or(l.Ref, "no policy"), l.Scope, l.Kind, l.Title(), l.Text, mark))
	}
	return lines
}

// outlook says when the execution will start, or will be given up.
func (w *Why) outlook() []string {
	var lines []string
	if e := w.Expected; e != nil {
		if e.At != nil {
			lines = append(lines, "Expected to start "+phrase.Clock(*e.At, w.At)+": "+e.Basis+".")
		} else {
			lines = append(lines, "When it starts is "+e.Basis+".")
		}
	}
	switch {
	case w.Waiting.Expires != nil && w.Expected != nil && w.Expected.At != nil && w.Expected.At.After(*w.Waiting.Expires):
		lines = append(lines, "Before that, "+phrase.Clock(*w.Waiting.Expires, w.At)+", it is given up as having waited too long.")
	case w.Waiting.Expires != nil:
		lines = append(lines, "If it still waits "+phrase.Clock(*w.Waiting.Expires, w.At)+", it is given up.")
	case w.Queue.QueueTimeout > 0 && w.Queue.Paused:
		lines = append(lines, "It is not given up while the queue is paused; then it may wait for "+phrase.Span(w.Queue.QueueTimeout)+".")
	}
	return lines
}

// extra are the further lines of an execution that does not wait.
func (w *Why) extra() []string {
	var lines []string
	if w.Unknown != "" {
		lines = append(lines, "Nothing is known of queues: "+w.Unknown+".")
	}
	if w.holds && attune.Status(w.Status).Terminal() {
		lines = append(lines, "Its slot has not been given back yet; the engine does that when it hears of the end.")
	}
	if w.inLine {
		lines = append(lines, "It still has a place in line, which the engine takes away with its next batch for that queue.")
	}
	if w.Status == string(attune.StatusRequested) && w.Replicas != nil && *w.Replicas > 0 {
		lines = append(lines, w.engineLines()...)
	}
	lines = append(lines, w.leftOver()...)
	lines = append(lines, w.workerLines()...)
	if w.Queue != nil && w.holds && !attune.Status(w.Status).Terminal() {
		lines = append(lines, "It holds a slot of queue "+w.Queue.Name()+"."+waited(w))
	}
	return lines
}

// leftOver says what an abandoned execution may have left running.
func (w *Why) leftOver() []string {
	switch {
	case w.Status != string(attune.StatusAbandoned) || w.WorkerID == nil:
		return nil
	case strings.Contains(w.Reason+w.refusal, "the worker's process ended"):
		return []string{"The action was killed with the worker, but a process that it started in a session of its own (setsid) may still run there."}
	default:
		return []string{"The action may still run there: nothing has been heard of its worker since."}
	}
}

func waited(w *Why) string {
	if w.admittedAt == nil {
		return ""
	}
	return " It waited " + phrase.Span(max(w.admittedAt.Sub(w.Created), 0)) + " for it."
}

// sentence says what an execution does that stands in no queue.
func (w *Why) sentence(staleAfter time.Duration) string {
	name := fmt.Sprintf("Execution %d of %s", w.ID, w.ActionRef)
	switch status := attune.Status(w.Status); status {
	case attune.StatusRequested:
		if w.Retry != nil {
			return name + " " + w.Retry.sentence(w.At)
		}
		return name + " " + w.requested()
	case attune.StatusScheduling:
		return fmt.Sprintf("%s is being handed to a worker, for %s.", name, phrase.Since(w.Updated, w.At))
	case attune.StatusScheduled:
		return fmt.Sprintf("%s was handed to %s %s ago, which has not picked it up yet.%s%s",
			name, w.on(), phrase.Since(w.Updated, w.At), w.unwell(staleAfter), w.given(staleAfter))
	case attune.StatusRunning:
		from := w.Updated
		if w.StartedAt != nil {
			from = *w.StartedAt
		}
		if w.workflow {
			return fmt.Sprintf("%s is a workflow and runs for %s; what it waits for is shown by workflow show %d.", name, phrase.Since(from, w.At), w.ID)
		}
		return fmt.Sprintf("%s runs on %s, for %s.%s", name, w.on(), phrase.Since(from, w.At), w.unwell(staleAfter))
	case attune.StatusCanceling:
		return fmt.Sprintf("%s is being cancelled on %s, for %s.%s", name, w.on(), phrase.Since(w.Updated, w.At), w.unwell(staleAfter))
	default:
		return name + " " + w.ended(status)
	}
}

// requested says why a requested execution stands in no queue.
func (w *Why) requested() string {
	text := "was requested " + phrase.Since(w.Created, w.At) + " ago"
	switch {
	case w.Unknown != "":
		return text + "; where it waits is not known."
	case w.workflow:
		return text + ", and workflows have no queue: the engine has not got to its message."
	case w.Replicas != nil && *w.Replicas == 0:
		return text + " and stands in no queue yet: " + strings.ToLower(NoEngine[:1]) + NoEngine[1:]
	default:
		return text + " and stands in no queue yet: the engine has not got to its message; lost messages are looked for every few seconds and " +
			"found about half a minute after the request."
	}
}

// refusals are the errors by which the engine ends what it does not let run.
var refusals = map[string]string{
	"Queue full": "was refused", "policy violation": "was refused", "Queue timeout": "was given up",
}

// ended says how an execution ended, and how long it took.
func (w *Why) ended(status attune.Status) string {
	at := w.Updated
	if w.FinishedAt != nil {
		at = *w.FinishedAt
	}
	reason, _, _ := strings.Cut(w.refusal, " (")
	if word, ok := refusals[reason]; ok {
		text := word + " " + phrase.Clock(at, w.At) + ": " + w.refusal
		if w.Reason != "" && w.Reason != w.refusal {
			text += ", " + w.Reason
		}
		return strings.TrimSuffix(text, ".") + "."
	}
	text := map[attune.Status]string{
		attune.StatusCompleted: "completed", attune.StatusFailed: "failed", attune.StatusCancelled: "was cancelled",
		attune.StatusTimeout: "took too long and ended", attune.StatusAbandoned: "was abandoned",
	}[status]
	if text == "" {
		text = "is " + string(status) + " since"
	}
	text += " " + phrase.Clock(at, w.At)
	if w.StartedAt != nil {
		text += " after running for " + phrase.Span(max(at.Sub(*w.StartedAt), 0))
	}
	if w.Reason != "" {
		text += ": " + w.Reason
	}
	return strings.TrimSuffix(text, ".") + "."
}

func (w *Why) on() string {
	switch {
	case w.WorkerID == nil:
		return "no worker"
	case w.WorkerName != "":
		return "worker " + w.WorkerName
	default:
		return fmt.Sprintf("worker %d", *w.WorkerID)
	}
}

// given adds what becomes of work that its worker does not begin.
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
		return " It stays there: executor.enable_timeout_monitor is off, so nobody looks for work that is not begun."
	case h.HeartbeatAge == nil || *h.HeartbeatAge > staleAfter:
		return " Unless it comes back, " + next
	case w.allowed > 0:
		return " If it has not begun " + phrase.Clock(w.Updated.Add(w.allowed), w.At) + ", or if the worker sends no heartbeat for " + phrase.Span(staleAfter) +
			", " + next + " A worker that runs all it can keeps it while no other has room."
	default:
		return " If no heartbeat comes, the worker counts as gone " + phrase.Clock(w.At.Add(staleAfter-*h.HeartbeatAge), w.At) + ", and " + next
	}
}

// unwell adds what is wrong with the worker, if anything is.
func (w *Why) unwell(staleAfter time.Duration) string {
	h := w.worker
	switch {
	case h == nil, h.Health == monitor.WorkerActive, h.Health == monitor.WorkerBusy:
		return ""
	case h.Health == monitor.WorkerStale && h.HeartbeatAge != nil:
		return fmt.Sprintf(" The worker's last heartbeat was %s ago, later than the %s it may take.", phrase.Span(*h.HeartbeatAge), phrase.Span(staleAfter))
	default:
		return " The worker is " + cmp.Or(string(h.Health), "not registered any more") + "."
	}
}
