package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/tracing"
)

func newExecutionCommand(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "execution",
		Aliases: []string{"executions"},
		Short:   "Show executions, and act on them",
		Example: "  attune-executor execution list --status failed\n  attune-executor execution show 42",
	}, newExecutionListCommand(a), showing(a, &cobra.Command{
		Use:   "why ID",
		Short: "Explain why an execution waits, and until when",
		Long: "Explain in sentences why an execution waits: its place, the limit and its author, the holders of the\n" +
			"slots, other causes and its probable start. If it does not wait, explain its state.",
		Example: "  attune-executor execution why 42\n  attune-executor execution why 42 -o json",
	}, anExecution, func(c *client, ctx context.Context, id int64) (*explain.Why, error) {
		return c.monitor().Why(ctx, id)
	}, func(w *page, why *explain.Why) {
		for _, line := range why.Lines {
			w.row(line)
		}
	}), showing(a, &cobra.Command{
		Use:     "show ID",
		Short:   "Show one execution: its state, attempts, timeline and result",
		Example: "  attune-executor execution show 42 -o json",
	}, anExecution, (*client).execution, executionPage))
}

func newExecutionListCommand(a *app) *cobra.Command {
	var (
		chosen selection
		cursor int64
	)
	var filter monitor.ExecutionFilter
	cmd := reading(a, &cobra.Command{
		Use:   "list",
		Short: "List executions, the newest first",
		Example: "  attune-executor execution list --status failed,timeout --action 'core.*' --limit 50\n" +
			"  attune-executor execution list --status requested -p tenant=t7 -p order.country=de\n" +
			"  attune-executor execution list --parent 42\n  attune-executor execution list --cursor 1200",
	}, func() (err error) {
		if filter, err = chosen.read(); err != nil {
			return err
		}
		if filter.Parent < 0 || filter.Parent > 0 && (filter.Action+filter.Worker != "" || filter.MaxAge != 0) {
			return usageErrorf("--parent takes the id of an execution, and goes with --status only")
		}
		return checkPage(filter.Limit)
	}, func(c *client, _ []string) (*monitor.Executions, error) {
		return c.monitor().Executions(c.cmd.Context(), filter, cursor)
	}, executionsPage)
	chosen.flags(cmd)
	flags := cmd.Flags()
	flags.Int64Var(&chosen.filter.Parent, "parent", 0, "only the children of this execution: the tasks of a workflow")
	pageFlags(flags, &chosen.filter.Limit, &cursor)
	return cmd
}

func executionsPage(w *page, list *monitor.Executions) {
	const titles = "ID, ACTION, STATUS, WORKER, TRY, AGE, TOOK, REASON"
	table(w, "", list.List, titles, func(e *monitor.Execution) []any {
		return []any{
			e.ID, e.ActionRef, e.Status, monitor.WorkerName(e.WorkerID, e.WorkerName), e.RetryCount + 1,
			short(list.At.Sub(e.Created)), spanText(e.StartedAt, e.FinishedAt), e.Why(),
		}
	})
	if list.Bounded {
		w.rowf("searched %d of about %d: --cursor %d goes on", list.Looked, list.Looked+list.Left, list.Next)
		return
	}
	w.more(list.Next, false)
}

func spanText(from, to *time.Time) string {
	if from == nil || to == nil {
		return "-"
	}
	return short(to.Sub(*from))
}

// executionView is an execution with its documents as JSON, not as text that holds JSON.
type executionView struct {
	*monitor.ExecutionDetail
	history

	Config json.RawMessage `json:"config,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	// TraceID is its trace, if traces are on in the configuration of this command.
	TraceID string `json:"trace_id,omitempty"`
}

// document returns a JSON text as it is, and a cut one as a string.
func document(text string) json.RawMessage {
	if text == "" || json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return nil // a string can always be written
	}
	return quoted
}

func executionPage(w *page, v executionView) {
	e := v.ExecutionDetail
	w.row("execution", e.ID)
	w.row("action", e.ActionRef)
	w.row("status", e.Status)
	w.row("worker", monitor.WorkerName(e.WorkerID, e.WorkerName))
	w.row("requested", at(e.Created, e.At))
	w.fact("work queue", e.WorkQueue)
	if e.StartedAt != nil {
		w.row("waited", spanText(&e.Created, e.StartedAt))
		w.row("ran", spanText(e.StartedAt, cmp.Or(e.FinishedAt, &e.At)))
	}
	w.fact("parent", opt(e.Parent))
	w.fact("trace", v.TraceID)
	w.facts(v.lines(e.At))
	if e.Children.Value > 0 {
		w.row("children", e.Children.Value)
	}
	if e.Waiting != nil {
		w.row("waiting", waitingText(e.Waiting, e.At))
	}
	if e.Expected != nil {
		w.row("starts", explain.Outlook(*e.Expected, e.At))
	}
	w.fact("reason", e.Reason)
	v.history.table(w, e.At)
	if e.TimelineKnown {
		w.text("\ntimeline")
		for _, step := range e.Timeline {
			worker := ""
			if step.Worker != nil {
				worker = fmt.Sprintf("worker %d", *step.Worker)
			}
			w.row("  +"+short(step.At.Sub(e.Created)),
				cmp.Or(step.Status, strings.Join(step.Changed, ", ")+" changed"), worker)
		}
	}
	w.document("parameters"+partly(e.Config, e.ConfigBytes), []byte(e.Config))
	w.document("result"+partly(e.Result, e.ResultBytes), []byte(e.Result))
}

// partly says how much of a document is shown, if it is cut.
func partly(part string, whole int64) string {
	if whole == 0 {
		return ""
	}
	return ", " + phrase.Part(len(part), whole) + ": -o json writes all"
}

func waitingText(waiting *monitor.Waiting, now time.Time) string {
	text := fmt.Sprintf("in queue %s for %s, %d ahead, %d running", waiting.Queue, short(now.Sub(waiting.Since)),
		waiting.Ahead.Value, waiting.Active)
	if waiting.Limit != nil {
		text += fmt.Sprintf(" of %d", *waiting.Limit)
	}
	if waiting.Paused {
		text += ", paused"
	}
	return text
}

// unsuccessful reports whether an engine may repeat an execution with this status.
func unsuccessful(status lifecycle.Status) bool {
	return status.Terminal() && !status.Succeeded() && status != lifecycle.StatusCancelled
}

// history has the attempts of an execution.
type history struct {
	// Attempts are all attempts of the chain, the first one first.
	Attempts []monitor.Attempt `json:"attempts"`
	// NotRepeated is the reason why an unsuccessful execution is not repeated.
	NotRepeated string `json:"not_repeated,omitempty"`

	expected bool
	self     monitor.Attempt
}

func (c *client) execution(ctx context.Context, id int64) (view executionView, err error) {
	read := c.monitor().WholeExecution
	if c.app.output == "table" {
		read = c.monitor().Execution
	}
	e, err := read(ctx, id)
	if err != nil {
		return view, err
	}
	view = executionView{ExecutionDetail: e, Config: document(e.Config), Result: document(e.Result)}
	if c.cfg.Telemetry.OTLPEndpoint != "" {
		roots, err := tracing.NewRoots(c.store, 1).Executions(ctx, []int64{id})
		if err != nil {
			return view, err
		}
		view.TraceID = roots[id].Trace.String()
	}
	h := &view.history
	if h.Attempts, err = c.monitor().Attempts(ctx, id); err != nil {
		return view, err
	}
	for _, attempt := range h.Attempts {
		if attempt.ID == id {
			h.self = attempt
		}
	}
	if h.self.RepeatedBy != nil || !unsuccessful(lifecycle.Status(e.Status)) {
		return view, nil
	}
	next, err := c.monitor().NextRetry(ctx, id, c.cfg.Executor.Retry.Policy())
	if err == nil {
		h.expected, h.NotRepeated = next.Expected, next.Why
	}
	return view, err
}

// lines are the facts about the place of an execution among its attempts.
func (h history) lines(now time.Time) [][2]string {
	var lines [][2]string
	add := func(name, value string) { lines = append(lines, [2]string{name, value}) }
	if h.self.Number > 1 {
		add("attempt", strconv.FormatInt(h.self.Number, 10))
	}
	if h.self.Repeats != nil {
		text := fmt.Sprintf("%d (%s)", *h.self.Repeats, dash(h.self.Reason))
		if h.self.RequestedBy != "" {
			text += " by " + h.self.RequestedBy
		}
		add("repeats", text)
	}
	if h.self.Due != nil {
		add("due", dueText(*h.self.Due, now))
	}
	switch {
	case h.self.RepeatedBy != nil:
		add("repeated by", strconv.FormatInt(*h.self.RepeatedBy, 10))
	case h.expected:
		add("repeated by", "none yet: an engine will repeat it")
	case h.NotRepeated != "":
		add("repeated by", "none: "+h.NotRepeated)
	}
	return lines
}

func dueText(due, now time.Time) string {
	if !due.After(now) {
		return "now"
	}
	return fmt.Sprintf("%s, in %s", due.Format(time.RFC3339), short(due.Sub(now)))
}

// table lists the attempts if there are several.
func (h history) table(w *page, now time.Time) {
	if len(h.Attempts) < 2 {
		return
	}
	w.text("\nattempts")
	table(w, "", h.Attempts, "  #, ID, STATUS, WHY, WORKER, REQUESTED, RAN, ERROR", func(a *monitor.Attempt) []any {
		status := any(a.Status)
		if a.Due != nil {
			status = "due in " + short(a.Due.Sub(now))
		}
		return []any{
			fmt.Sprintf("  %d", a.Number), a.ID, status, dash(a.Reason), monitor.WorkerName(a.WorkerID, a.WorkerName),
			short(now.Sub(a.Created)) + " ago", spanText(a.StartedAt, a.FinishedAt), dash(a.Error),
		}
	})
}
