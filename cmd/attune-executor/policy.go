package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/monitor"
)

func newPolicyCommand(a *app) *cobra.Command {
	return newItemCommand(a, itemKind[monitor.PolicyItem, monitor.PolicyDetail]{
		name: "policy", plural: "policies", example: "core.limit", short: "Look at policies, the limits of executions, and delete them",
		make: "describe one in a file, `ref: core.limit`, `action: core.sleep`, `threshold: 2`, and run `attune-executor apply FILE`",
		read: (*monitor.Monitor).Policies, show: (*monitor.Monitor).Policy, detail: policyPage,
		columns: []column[monitor.PolicyItem]{
			col("POLICY", func(p *monitor.PolicyItem) any { return p.Ref }),
			col("PACK", func(p *monitor.PolicyItem) any { return dash(p.PackRef) }),
			col("ABOUT", func(p *monitor.PolicyItem) any { return policyScope(p) }),
			col("LIMIT", func(p *monitor.PolicyItem) any { return p.Limit }),
			col("IN FORCE", func(p *monitor.PolicyItem) any {
				if p.NewerRef != "" {
					return "no, " + p.NewerRef + " is newer"
				}
				return "yes"
			}),
			col("FROM", func(p *monitor.PolicyItem) any { return from(&p.Item) }),
		},
	}, newPolicyDeleteCommand(a))
}

func policyScope(p *monitor.PolicyItem) string {
	switch {
	case p.ActionRef != "":
		return "action " + p.ActionRef
	case p.PackRef != "":
		return "pack " + p.PackRef
	}
	return "everything"
}

func policyState(p *monitor.PolicyItem) string {
	if p.NewerRef != "" {
		return p.Limit + " (not in force: " + p.NewerRef + " is a newer concurrency policy of the same scope)"
	}
	return p.Limit
}

func policyPage(w *page, p *monitor.PolicyDetail) {
	about(w, "policy", &p.Item)
	w.row("about", policyScope(&p.PolicyItem))
	w.fact("kind", p.Kind)
	w.fact("limit", policyState(&p.PolicyItem))
	w.fact("method", p.Method)
	w.fact("groups", strings.Join(p.Parameters, ", "))
	if p.MaxQueueLength != 0 {
		w.row("queue length", p.MaxQueueLength)
	}
	if p.QueueTimeoutSeconds > 0 {
		w.row("queue timeout", short(time.Duration(p.QueueTimeoutSeconds)*time.Second))
	}
	w.fact("retries at", p.RetryPlace)
	if p.AdaptiveMin > 0 {
		adaptive := fmt.Sprintf("from %d to %d", p.AdaptiveMin, p.Threshold)
		if p.AdaptiveLatencyMS > 0 {
			adaptive += fmt.Sprintf(", runs above %s count as bad", short(time.Duration(p.AdaptiveLatencyMS)*time.Millisecond))
		}
		w.row("adaptive", adaptive)
	}
	w.fact("tags", strings.Join(p.Tags, ", "))
	source(w, &p.Item)
	for _, scope := range p.Scopes {
		w.row("used", strings.TrimSpace(scope.State(p.At)+" "+scope.Group))
	}
	if p.MoreScopes {
		w.row("used", "there are more groups")
	}
	if len(p.Queues) == 0 {
		w.row("now", "no execution waits or holds a slot in its queues")
		return
	}
	w.row()
	table(w, "", p.Queues,
		col("QUEUE", func(q *monitor.Queue) any { return q.ActionRef }),
		col("GROUP", func(q *monitor.Queue) any { return dash(q.Group) }),
		col("STATE", func(q *monitor.Queue) any { return q.State() }),
		col("HOLD A SLOT", func(q *monitor.Queue) any { return q.Active }),
		col("WAIT", func(q *monitor.Queue) any { return q.Queued }),
		col("OLDEST", func(q *monitor.Queue) any { return ageText(q.Oldest, p.At) }))
	if p.MoreQueues {
		w.row("more queues: `attune-executor queue list` shows them")
	}
}

func newPolicyDeleteCommand(a *app) *cobra.Command {
	var reason string
	var flags planFlags
	cmd := &cobra.Command{
		Use:   "delete REF",
		Short: "Delete a policy: its limit no longer holds",
		Long: "Delete a policy: its limit no longer holds. Running executions go on; executions that waited only for this limit start\n" +
			"at once. If a file still describes the policy, the next `apply` of that file makes it again. Asks first, unless --yes\n" +
			"is given.",
		Example: "  attune-executor policy delete core.limit\n  attune-executor policy delete core.limit --yes --reason 'the disk is replaced'",
		Args:    oneArg("the ref of a policy, such as core.limit"),
		RunE: a.connected(func(c *client, args []string) error {
			return c.deletePolicy(catalog.PolicyDeletion{Ref: args[0], Reason: reason, Actor: operator(), Source: "attune-executor"}, flags)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit")
	flags.add(cmd.Flags(), "show the policy and its queues, and delete nothing", "do not ask")
	return cmd
}

func policyQuestion(one *monitor.PolicyDetail) *question {
	var wait int
	for i := range one.Queues {
		wait += int(one.Queues[i].Queued)
	}
	what := fmt.Sprintf("policy %s (%s: %s)", one.Ref, policyScope(&one.PolicyItem), one.Limit)
	return &question{
		unasked: fmt.Sprintf("%s would be deleted, %s in its queues: --yes deletes, --dry-run shows them", what, waiting(wait)),
		text:    fmt.Sprintf("delete %s? %s in its queues. type its ref: ", clean(what), waiting(wait)),
		want:    one.Ref, nothing: "nothing was deleted",
	}
}

func (c *client) deletePolicy(order catalog.PolicyDeletion, flags planFlags) error {
	ctx := c.cmd.Context()
	one, err := c.monitor().Policy(ctx, order.Ref)
	if errors.Is(err, monitor.ErrNotFound) {
		return missingRef("policy", order.Ref)
	}
	if err != nil {
		return err
	}
	if flags.dryRun {
		c.notef("a dry run: the policy %s stays", order.Ref)
		return c.show(one, func(w *page) { policyPage(w, one) })
	}
	if _, err := c.settle(flags, nil, nil, policyQuestion(one)); err != nil {
		return err
	}
	var committed committedMessages
	receipt, err := catalog.New(c.store, &committed).DeletePolicy(ctx, order)
	if errors.Is(err, catalog.ErrNoPolicy) {
		return missingRef("policy", order.Ref)
	}
	if err != nil {
		return err
	}
	c.publish(ctx, &committed)
	return c.show(receipt, func(w *page) {
		text := fmt.Sprintf("policy %s is deleted (audit %d)", receipt.Ref, receipt.Audit)
		if receipt.Nudged > 0 {
			text += fmt.Sprintf("; %s with waiting executions look again", count(receipt.Nudged, "queue"))
		}
		w.row(text)
	})
}
