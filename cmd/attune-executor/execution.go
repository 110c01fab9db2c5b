package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/monitor"
)

func newExecutionCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "execution",
		Aliases: []string{"executions"},
		Short:   "Look at executions, and act on them",
		Example: "  attune-executor execution list --status failed\n  attune-executor execution show 42",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExecutionListCommand(a), newExecutionWhyCommand(a), newExecutionRetryCommand(a), newExecutionCancelCommand(a), &cobra.Command{
		Use:     "show ID",
		Short:   "Show one execution: where it stands, its attempts, its timeline and its result",
		Example: "  attune-executor execution show 42 -o json",
		Args:    oneArg("the id of an execution"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.showExecution(cmd, args[0]) },
	})
	return cmd
}

func newExecutionListCommand(a *app) *cobra.Command {
	var (
		chosen selection
		cursor int64
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List executions, the newest first",
		Example: "  attune-executor execution list --status failed,timeout --action 'core.*' --limit 50\n" +
			"  attune-executor execution list --status requested -p tenant=t7 -p order.country=de\n" +
			"  attune-executor execution list --parent 42\n  attune-executor execution list --cursor 1200",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := chosen.read()
			if err != nil {
				return err
			}
			if filter.Parent < 0 || filter.Parent > 0 && (filter.Action+filter.Worker != "" || filter.MaxAge != 0) {
				return usageErrorf("--parent takes the id of an execution, and goes with --status only")
			}
			if filter.Limit < 1 {
				return usageErrorf("--limit must be at least 1")
			}
			return a.listExecutions(cmd, filter, cursor)
		},
	}
	chosen.flags(cmd)
	flags := cmd.Flags()
	flags.Int64Var(&chosen.filter.Parent, "parent", 0, "only what this execution has started: the tasks of a workflow")
	flags.IntVar(&chosen.filter.Limit, "limit", 20, "how many to list")
	flags.Int64Var(&cursor, "cursor", 0, "go on below this id")
	return cmd
}

func statusWords() string {
	words := make([]string, len(attune.Statuses))
	for i, status := range attune.Statuses {
		words[i] = string(status)
	}
	return strings.Join(words, ", ")
}

func (a *app) listExecutions(cmd *cobra.Command, filter monitor.ExecutionFilter, cursor int64) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	page, err := c.monitor().Executions(cmd.Context(), filter, cursor)
	if err != nil {
		return err
	}
	return a.print(cmd, page, func(w io.Writer) error {
		if err := row(w, "ID", "ACTION", "STATUS", "WORKER", "ATTEMPT", "AGE", "TOOK", "REASON"); err != nil {
			return err
		}
		for i := range page.List {
			e := &page.List[i]
			age := short(page.At.Sub(e.Created))
			if err := row(w, e.ID, e.ActionRef, e.Status, workerText(*e), e.Try(), age, tookText(*e), e.Reason); err != nil {
				return err
			}
		}
		return listEnd(w, page)
	})
}

func listEnd(w io.Writer, page *monitor.Executions) error {
	switch {
	case page.Bounded && page.Looked > 0:
		return row(w, fmt.Sprintf("%d were looked at, older ones are not in this list: --cursor %d goes on", page.Looked, page.Next))
	case page.Next != 0:
		return row(w, fmt.Sprintf("more: --cursor %d", page.Next))
	case page.Bounded:
		return row(w, "the search stopped at its bound; older matches may exist: narrow it with --since")
	}
	return nil
}

func workerText(e monitor.Execution) string {
	switch {
	case e.WorkerName != "":
		return e.WorkerName
	case e.WorkerID != nil:
		return strconv.FormatInt(*e.WorkerID, 10)
	}
	return "-"
}

func tookText(e monitor.Execution) string {
	if e.StartedAt == nil || e.FinishedAt == nil {
		return "-"
	}
	return short(e.FinishedAt.Sub(*e.StartedAt))
}

func (a *app) showExecution(cmd *cobra.Command, text string) error {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return usageErrorf("%q is not the id of an execution", text)
	}
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	e, err := c.monitor().Execution(cmd.Context(), id)
	if errors.Is(err, monitor.ErrNotFound) {
		return failedErrorf("there is no execution %d: `attune-executor execution list` shows the newest", id)
	}
	if err != nil {
		return err
	}
	attempts, err := c.history(cmd.Context(), e)
	if err != nil {
		return err
	}
	view := executionView{ExecutionDetail: e, history: attempts, Config: document(e.Config), Result: document(e.Result)}
	return a.print(cmd, view, func(w io.Writer) error { return executionTable(w, e, attempts) })
}

// executionView is an execution whose documents are JSON, not text that holds
// JSON.
type executionView struct {
	*monitor.ExecutionDetail
	history

	Config json.RawMessage `json:"config,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// document returns a JSON text as it is, and one that was cut as a string.
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

func executionTable(w io.Writer, e *monitor.ExecutionDetail, attempts history) error {
	lines := [][2]string{
		{"execution", strconv.FormatInt(e.ID, 10)},
		{"action", e.ActionRef},
		{"status", e.Status},
		{"worker", workerText(e.Execution)},
		{"requested", e.Created.Format(time.RFC3339) + ", " + short(e.At.Sub(e.Created)) + " ago"},
	}
	add := func(name, value string) { lines = append(lines, [2]string{name, value}) }
	if e.WorkQueue != "" {
		add("work queue", e.WorkQueue)
	}
	if e.StartedAt != nil {
		add("waited", short(e.StartedAt.Sub(e.Created)))
		end := e.At
		if e.FinishedAt != nil {
			end = *e.FinishedAt
		}
		add("ran", short(end.Sub(*e.StartedAt)))
	}
	if e.Parent != nil {
		add("parent", strconv.FormatInt(*e.Parent, 10))
	}
	lines = append(lines, attempts.lines(e.At)...)
	if e.Children.Value > 0 {
		add("children", strconv.FormatInt(e.Children.Value, 10))
	}
	if e.Waiting != nil {
		add("waiting", waitingText(e.Waiting, e.At))
	}
	if e.Reason != "" {
		add("reason", e.Reason)
	}
	for _, line := range lines {
		if err := row(w, line[0], line[1]); err != nil {
			return err
		}
	}
	if err := attempts.table(w, e.At); err != nil {
		return err
	}
	if err := timelineTable(w, e); err != nil {
		return err
	}
	for _, document := range [][2]string{{"parameters", e.Config}, {"result", e.Result}} {
		if document[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s\n%s\n", document[0], pretty([]byte(document[1]))); err != nil {
			return err
		}
	}
	return nil
}

func waitingText(waiting *monitor.Waiting, now time.Time) string {
	text := fmt.Sprintf("in queue %s for %s, %d ahead, %d running", waiting.Queue, short(now.Sub(waiting.Since)), waiting.Ahead.Value, waiting.Active)
	if waiting.Limit != nil {
		text += fmt.Sprintf(" of %d", *waiting.Limit)
	}
	if waiting.Paused {
		text += ", paused"
	}
	return text
}

func timelineTable(w io.Writer, e *monitor.ExecutionDetail) error {
	if !e.TimelineKnown {
		return nil
	}
	if _, err := fmt.Fprintln(w, "\ntimeline"); err != nil {
		return err
	}
	for _, step := range e.Timeline {
		what := step.Status
		if what == "" {
			what = strings.Join(step.Changed, ", ") + " changed"
		}
		worker := ""
		if step.Worker != nil {
			worker = fmt.Sprintf("worker %d", *step.Worker)
		}
		if err := row(w, "  +"+short(step.At.Sub(e.Created)), what, worker); err != nil {
			return err
		}
	}
	return nil
}

// monitor makes the read side for people.
func (c *client) monitor() *alerting.Reader {
	return alerting.NewReader(monitor.New(monitor.Config{
		HeartbeatEvery: c.cfg.Executor.HeartbeatInterval, StaleAfter: c.cfg.Executor.StaleAfter(), QueueTimeout: c.cfg.Executor.Queue.Timeout, MaxQueued: c.cfg.Executor.Queue.MaxQueueLength,
		OrphanInterval: c.cfg.Executor.OrphanInterval(), ScheduledTimeout: c.cfg.Executor.ScheduledTimeout,
		SilentReplicas: c.cfg.Retention.SilentReplicas, ActionRetries: retryPolicy(c.cfg).ActionRetries,
	}, monitor.Deps{Store: c.store}), c.cfg.Alerts, nil)
}
