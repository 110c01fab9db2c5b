package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/explain"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/policy"
	"github.com/attune-go/attune/core/triage"
)

func newQueueCommand(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "queue",
		Aliases: []string{"queues"},
		Short:   "Show the queues of actions, and act on them",
		Example: "  attune-executor queue list --blocked\n  attune-executor queue show core.echo",
	}, newQueueListCommand(a), newQueueShowCommand(a))
}

func newQueueListCommand(a *app) *cobra.Command {
	filter := monitor.QueueFilter{}
	cmd := reading(a, &cobra.Command{
		Use:     "list",
		Short:   "List the queues, the busiest first, and the limits they share",
		Example: "  attune-executor queue list --action core.\n  attune-executor queue list --paused -o json",
	}, func() error { return checkPage(filter.Limit) }, func(c *client, _ []string) (list queueList, err error) {
		if list.Queues, err = c.monitor().Queues(c.cmd.Context(), filter); err != nil {
			return list, err
		}
		scopes, err := c.monitor().Scopes(c.cmd.Context(), filter.Text)
		if err != nil {
			return list, err
		}
		list.List, list.Scopes = notNil(list.List), notNil(scopes.List)
		return list, nil
	}, func(w *page, list queueList) { queuesPage(w, list, filter) })
	flags := cmd.Flags()
	flags.StringVar(&filter.Text, "action", "", "only queues whose action or group contains this text")
	flags.BoolVar(&filter.Paused, "paused", false, "only queues that are paused")
	flags.BoolVar(&filter.Blocked, "blocked", false,
		"only queues with room that wait for something else, such as a worker")
	flags.BoolVar(&filter.All, "all", false, "also idle queues of groups that no policy has any more")
	flags.IntVar(&filter.Limit, "limit", 50, "how many to list")
	return cmd
}

func newQueueShowCommand(a *app) *cobra.Command {
	group := ""
	cmd := &cobra.Command{
		Use:   "show ACTION",
		Short: "Show one queue: its limits, the holders of its slots, the waiting executions",
		Long: "Show the queue of an action, by the action's ref or the queue's id. If a policy has parameters,\n" +
			"every combination of their values has its own queue: name it with --group.",
		Example: "  attune-executor queue show core.echo\n" +
			"  attune-executor queue show demo.deploy --group '{\"environment\":\"prod\"}'",
		Args: oneArg("the ref of an action or the id of a queue"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.showQueue(cmd, args[0], group) },
	}
	cmd.Flags().StringVar(&group, "group", "", "the values of the group, as a JSON object")
	return cmd
}

// queueList is the data of `queue list`.
type queueList struct {
	*monitor.Queues

	Scopes []monitor.Scope `json:"shared_limits"`
}

// notNil makes a list that is written as [] if it is empty.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func queuesPage(w *page, list queueList, filter monitor.QueueFilter) {
	none := "no queue exists yet: the first execution of an action makes one"
	if filter.Text != "" || filter.Paused || filter.Blocked {
		none = "none of " + phrase.Plural(list.Totals.Queues, "queue", "queues") + " matches"
	}
	titles := "ID, QUEUE, QUEUED, HIGH, LOW, ACTIVE, LIMIT, FROM, HEAD, STATE"
	table(w, none, list.List, titles, func(q *monitor.Queue) []any {
		return []any{
			q.ID, q.Name(), q.Queued, q.QueuedHigh, q.QueuedLow, q.Active, cmp.Or(opt(q.Limit), "none"),
			dash(q.LimitFrom.String()), ageText(q.Oldest, list.At), q.State(),
		}
	})
	if list.More {
		w.row("more: raise --limit")
	}
	if len(list.List) == 0 || len(list.Scopes) == 0 {
		return
	}
	w.text("\nlimits that queues share")
	table(w, "", list.Scopes, "ID, LIMIT, POLICY, STATE, BLOCKED QUEUES", func(s *monitor.Scope) []any {
		state := s.State(list.At)
		if s.Kind == string(policy.SharedRate) {
			state = fmt.Sprintf("%d every %s, %s", s.Limit, short(s.Window), state)
		}
		return []any{s.ID, s.Name, dash(s.PolicyRef), state, countText(s.Blocking)}
	})
}

func (a *app) showQueue(cmd *cobra.Command, which, group string) error {
	ref := explain.QueueRef{Action: which, Group: group}
	if id, err := strconv.ParseInt(which, 10, 64); err == nil {
		if group != "" {
			return usageErrorf("the id of a queue names its group already: leave out --group")
		}
		ref = explain.QueueRef{ID: id}
		if id < 1 { // a zero id would select by action
			return aQueue.missing(id)
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
	return c.show(d, func(w *page) { queuePage(w, d) })
}

func queueError(err error, ref explain.QueueRef) error {
	if unknown, ok := errors.AsType[*monitor.UnknownActionError](err); ok {
		return failedErrorf("%s", unknown.Error())
	}
	if target, ok := errors.AsType[*triage.TargetError](err); ok {
		if errors.Is(target, triage.ErrGroup) {
			return usageErrorf("%w", target)
		}
		return failedErrorf("%w: `attune-executor queue list` shows the queues", target)
	}
	if errors.Is(err, monitor.ErrUnmigrated) {
		return failedErrorf("%s", monitor.ErrUnmigrated.Error())
	}
	if !errors.Is(err, monitor.ErrNotFound) {
		return err
	}
	if ref.ID != 0 {
		return aQueue.missing(ref.ID)
	}
	return failedErrorf("%s has no queue for the group %s: `attune-executor queue list --action %s` shows those it has",
		ref.Action, ref.Group, ref.Action)
}

func queuePage(w *page, d *explain.QueueDetail) {
	for _, section := range d.Sections() {
		if section.Title != "" {
			w.text("\n" + clean(section.Title))
		}
		for _, cells := range section.Rows {
			values := make([]any, len(cells))
			for i, cell := range cells {
				values[i] = cell
			}
			w.row(values...)
		}
	}
}
