package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/monitor"
)

func newPolicyCommand(a *app) *cobra.Command {
	cmd := newItemCommand(a, itemKind[monitor.PolicyItem, monitor.PolicyDetail]{
		name: "policy", plural: "policies", example: "core.limit",
		make: "describe one in a file, `ref: core.limit`, `action: core.sleep`, `threshold: 2`, and run `attune-executor apply FILE`",
		read: (*monitor.Monitor).Policies, show: (*monitor.Monitor).Policy, detail: policyDetail,
		header: []any{"POLICY", "PACK", "ABOUT", "LIMIT", "IN FORCE", "FROM"},
		cells: func(p *monitor.PolicyItem) []any {
			inForce := "yes"
			if p.NewerRef != "" {
				inForce = "no, " + p.NewerRef + " is newer"
			}
			return []any{p.Ref, dash(p.PackRef), policyScope(p), p.Limit, inForce, from(&p.Item)}
		},
	})
	cmd.Short = "Look at policies, the limits of executions, and delete them"
	cmd.AddCommand(newPolicyDeleteCommand(a))
	return cmd
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

func policyDetail(w io.Writer, p *monitor.PolicyDetail) error {
	count := func(n int64) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	timeout, adaptive := "", ""
	if p.QueueTimeoutSeconds > 0 {
		timeout = short(time.Duration(p.QueueTimeoutSeconds) * time.Second)
	}
	if p.AdaptiveMin > 0 {
		adaptive = fmt.Sprintf("from %d to %d", p.AdaptiveMin, p.Threshold)
		if p.AdaptiveLatencyMS > 0 {
			adaptive += fmt.Sprintf(", runs above %s count as bad", short(time.Duration(p.AdaptiveLatencyMS)*time.Millisecond))
		}
	}
	lines := about("policy", &p.Item, [2]string{"about", policyScope(&p.PolicyItem)}, [2]string{"kind", p.Kind}, [2]string{"limit", policyState(&p.PolicyItem)},
		[2]string{"method", p.Method}, [2]string{"groups", strings.Join(p.Parameters, ", ")}, [2]string{"queue length", count(p.MaxQueueLength)},
		[2]string{"queue timeout", timeout}, [2]string{"retries at", p.RetryPlace}, [2]string{"adaptive", adaptive}, [2]string{"tags", strings.Join(p.Tags, ", ")})
	for _, scope := range p.Scopes {
		text := scope.State(p.At)
		if scope.Group != "" {
			text += " " + scope.Group
		}
		lines = append(lines, [2]string{"used", text})
	}
	if p.MoreScopes {
		lines = append(lines, [2]string{"used", "there are more groups"})
	}
	if err := details(w, lines); err != nil {
		return err
	}
	if len(p.Queues) == 0 {
		return row(w, "now", "no execution waits or holds a slot in its queues")
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := row(w, "QUEUE", "GROUP", "STATE", "HOLD A SLOT", "WAIT", "OLDEST"); err != nil {
		return err
	}
	for i := range p.Queues {
		q := &p.Queues[i]
		oldest := "-"
		if q.Oldest != nil {
			oldest = short(p.At.Sub(*q.Oldest))
		}
		if err := row(w, q.ActionRef, dash(q.Group), q.State(), q.Active, q.Queued, oldest); err != nil {
			return err
		}
	}
	if p.MoreQueues {
		return row(w, "more queues: `attune-executor queue list` shows them")
	}
	return nil
}

func newPolicyDeleteCommand(a *app) *cobra.Command {
	var reason string
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use:   "delete REF",
		Short: "Delete a policy: its limit no longer holds",
		Long: "Delete a policy: its limit no longer holds. Running executions go on; executions that waited only for this limit start\n" +
			"at once. If a file still describes the policy, the next `apply` of that file makes it again. Asks first, unless --yes\n" +
			"is given.",
		Example: "  attune-executor policy delete core.limit\n  attune-executor policy delete core.limit --yes --reason 'the disk is replaced'",
		Args:    oneArg("the ref of a policy, such as core.limit"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.deletePolicy(cmd, catalog.PolicyDeletion{Ref: args[0], Reason: reason, Actor: operator(), Source: "attune-executor"}, yes, dryRun)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&reason, "reason", "", "why, for the audit")
	flags.BoolVar(&dryRun, "dry-run", false, "show the policy and its queues, and delete nothing")
	flags.BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) deletePolicy(cmd *cobra.Command, order catalog.PolicyDeletion, yes, dryRun bool) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	one, err := c.monitor().Policy(cmd.Context(), order.Ref)
	if errors.Is(err, monitor.ErrNotFound) {
		return noItemError("policy", order.Ref)
	}
	if err != nil {
		return err
	}
	if dryRun {
		a.notef("a dry run: the policy %s stays", order.Ref)
		return a.print(cmd, one, func(w io.Writer) error { return policyDetail(w, one) })
	}
	if !yes {
		if err := confirmPolicy(cmd.InOrStdin(), a.stderr, interactive(cmd.InOrStdin()), one); err != nil {
			return err
		}
	}
	var committed committedMessages
	receipt, err := catalog.New(c.store, &committed).DeletePolicy(cmd.Context(), order)
	if errors.Is(err, catalog.ErrNoPolicy) {
		return noItemError("policy", order.Ref)
	}
	if err != nil {
		return err
	}
	c.publish(cmd.Context(), a, &committed)
	return a.print(cmd, receipt, func(w io.Writer) error {
		text := fmt.Sprintf("policy %s is deleted (audit %d)", receipt.Ref, receipt.Audit)
		if receipt.Nudged > 0 {
			text += fmt.Sprintf("; %s with waiting executions look again", count(receipt.Nudged, "queue"))
		}
		return row(w, text)
	})
}

// confirmPolicy asks a person to type the policy's ref. Without one it refuses.
func confirmPolicy(in io.Reader, out io.Writer, person bool, one *monitor.PolicyDetail) error {
	var wait int
	for i := range one.Queues {
		wait += int(one.Queues[i].Queued)
	}
	what := fmt.Sprintf("policy %s (%s: %s)", one.Ref, policyScope(&one.PolicyItem), one.Limit)
	if !person {
		return refusedErrorf("%s would be deleted, %s in its queues: --yes deletes, --dry-run shows them", what, waiting(wait))
	}
	_, _ = fmt.Fprintf(out, "delete %s? %s in its queues. type its ref: ", clean(what), waiting(wait))
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != one.Ref {
		return refusedErrorf("nothing was deleted: the answer is not %s", one.Ref)
	}
	return nil
}
