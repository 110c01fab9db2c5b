package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/triage"
)

func newQueueCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "queue",
		Aliases: []string{"queues"},
		Short:   "Look at the queues of actions and act on them",
		Example: "  attune-executor queue list --blocked\n  attune-executor queue show core.echo",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newQueueListCommand(a), newQueueShowCommand(a))
	cmd.AddCommand(a.queueActs()...)
	return cmd
}

func newQueueListCommand(a *app) *cobra.Command {
	filter := monitor.QueueFilter{}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the queues, the busiest first, and the limits they share",
		Example: "  attune-executor queue list --action core.\n  attune-executor queue list --paused -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 1 {
				return usageErrorf("--limit must be at least 1")
			}
			return a.listQueues(cmd, filter)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Text, "action", "", "only queues whose action or group contains this text")
	flags.BoolVar(&filter.Paused, "paused", false, "only queues that are paused")
	flags.BoolVar(&filter.Blocked, "blocked", false, "only queues that have room but wait for something wider, such as a worker")
	flags.BoolVar(&filter.All, "all", false, "also idle queues of groups that no policy makes any more")
	flags.IntVar(&filter.Limit, "limit", 50, "how many to list")
	return cmd
}

func newQueueShowCommand(a *app) *cobra.Command {
	group := ""
	cmd := &cobra.Command{
		Use:   "show ACTION",
		Short: "Show one queue: its limits, who holds its slots, who waits and for how long",
		Long: "Shows the queue of an action, by the action's ref or by the queue's id. Where a policy has parameters, every\n" +
			"combination of their values has a queue of its own: name it with --group.",
		Example: "  attune-executor queue show core.echo\n  attune-executor queue show demo.deploy --group '{\"environment\":\"prod\"}'",
		Args:    oneArg("the ref of an action or the id of a queue"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.showQueue(cmd, args[0], group) },
	}
	cmd.Flags().StringVar(&group, "group", "", "the values of the group, as a JSON object")
	return cmd
}

// queueList is what queue list prints as data.
type queueList struct {
	*monitor.Queues

	Scopes []monitor.Scope `json:"shared_limits"`
}

func (a *app) listQueues(cmd *cobra.Command, filter monitor.QueueFilter) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	queues, err := c.monitor().Queues(cmd.Context(), filter)
	if err != nil {
		return err
	}
	scopes, err := c.monitor().Scopes(cmd.Context(), filter.Text)
	if err != nil {
		return err
	}
	list := queueList{Queues: queues, Scopes: scopes.List}
	if list.List == nil {
		list.List = []monitor.Queue{} // an empty list, not null
	}
	if list.Scopes == nil {
		list.Scopes = []monitor.Scope{}
	}
	return a.print(cmd, list, func(w io.Writer) error { return queueListTable(w, list, filter) })
}

func queueListTable(w io.Writer, list queueList, filter monitor.QueueFilter) error {
	if len(list.List) == 0 {
		text := "no queue exists yet: the first execution of an action makes one"
		if filter.Text != "" || filter.Paused || filter.Blocked {
			text = fmt.Sprintf("none of %d queues matches", list.Totals.Queues)
		}
		return row(w, text)
	}
	if err := row(w, "ID", "QUEUE", "QUEUED", "HIGH", "LOW", "ACTIVE", "LIMIT", "FROM", "OLDEST", "STATE"); err != nil {
		return err
	}
	for _, q := range list.List {
		if err := row(w, q.ID, q.Name(), q.Queued, q.QueuedHigh, q.QueuedLow, q.Active, limitText(q.Limit), dash(q.LimitFrom.String()),
			ageText(q.Oldest, list.At), q.State()); err != nil {
			return err
		}
	}
	if list.More {
		if err := row(w, "more: raise --limit"); err != nil {
			return err
		}
	}
	return scopeTable(w, list.Scopes, list.At)
}

func scopeTable(w io.Writer, scopes []monitor.Scope, at time.Time) error {
	if len(scopes) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, "\nlimits that queues share"); err != nil {
		return err
	}
	if err := row(w, "ID", "LIMIT", "POLICY", "STATE", "BLOCKED QUEUES"); err != nil {
		return err
	}
	for _, s := range scopes {
		state := s.State(at)
		if s.Kind == string(policy.WideRate) {
			state = fmt.Sprintf("%d every %s, %s", s.Limit, short(s.Window), state)
		}
		if err := row(w, s.ID, s.Name, dash(s.PolicyRef), state, countText(s.Blocking)); err != nil {
			return err
		}
	}
	return nil
}

func limitText(limit *int64) string {
	if limit == nil {
		return "none"
	}
	return strconv.FormatInt(*limit, 10)
}

func countText(c monitor.Count) string {
	if c.AtLeast {
		return strconv.FormatInt(c.Value, 10) + "+"
	}
	return strconv.FormatInt(c.Value, 10)
}

func ageText(at *time.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	return short(now.Sub(*at))
}

func (a *app) showQueue(cmd *cobra.Command, which, group string) error {
	ref := explain.QueueRef{Action: which, Group: group}
	if id, err := strconv.ParseInt(which, 10, 64); err == nil {
		if group != "" {
			return usageErrorf("the id of a queue names its group already: leave out --group")
		}
		ref = explain.QueueRef{ID: id}
		if id < 1 { // to be told from a queue that is not named by its id
			return noQueue(id)
		}
	}
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	d, err := c.monitor().QueueDetail(cmd.Context(), ref)
	if err != nil {
		return queueError(err, ref)
	}
	return a.print(cmd, d, func(w io.Writer) error { return queueTable(w, d) })
}

func noQueue(id int64) error {
	return failedErrorf("there is no queue %d: `attune-executor queue list` shows them", id)
}

// queueError says in one line what was not found.
func queueError(err error, ref explain.QueueRef) error {
	if unknown, ok := errors.AsType[*monitor.UnknownActionError](err); ok {
		return failedErrorf("%s", unknown.Error())
	}
	if target, ok := errors.AsType[*triage.TargetError](err); ok {
		if errors.Is(target, triage.ErrGroup) {
			return usageErrorf("%w", target)
		}
		return failedErrorf("%w: `attune-executor queue list` shows those that are there", target)
	}
	if errors.Is(err, monitor.ErrUnmigrated) {
		return failedErrorf("%s", monitor.ErrUnmigrated.Error())
	}
	if !errors.Is(err, monitor.ErrNotFound) {
		return err
	}
	if ref.ID != 0 {
		return noQueue(ref.ID)
	}
	return failedErrorf("%s has no queue for the group %s: `attune-executor queue list --action %s` shows those it has", ref.Action, ref.Group, ref.Action)
}

func queueTable(w io.Writer, d *explain.QueueDetail) error {
	for _, section := range d.Sections() {
		if section.Title != "" {
			if _, err := fmt.Fprintf(w, "\n%s\n", clean(section.Title)); err != nil {
				return err
			}
		}
		for _, cells := range section.Rows {
			values := make([]any, len(cells))
			for i, cell := range cells {
				values[i] = cell
			}
			if err := row(w, values...); err != nil {
				return err
			}
		}
	}
	return nil
}
