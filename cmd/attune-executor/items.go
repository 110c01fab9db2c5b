package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

// itemKind is a kind of item with its list and its details.
type itemKind[T, D any] struct {
	name, plural, example string
	short                 string // default "Show " and the plural
	// make says how to create the first item.
	make   string
	read   func(m *monitor.Monitor, ctx context.Context, pack, cursor string) (*monitor.ItemPage[T], error)
	titles string
	cells  func(one *T) []any
	show   func(m *monitor.Monitor, ctx context.Context, ref string) (*D, error)
	detail func(w *page, one *D)
}

func newItemCommand[T, D any](a *app, kind itemKind[T, D], more ...*cobra.Command) *cobra.Command {
	var pack, cursor string
	list := reading(a, &cobra.Command{
		Use:     "list",
		Short:   "List " + kind.plural + " by ref",
		Example: fmt.Sprintf("  attune-executor %s list --pack deploy -o json", kind.name),
	}, unchecked, func(c *client, _ []string) (*monitor.ItemPage[T], error) {
		return kind.read(c.monitor().Monitor, c.cmd.Context(), pack, cursor)
	}, func(w *page, list *monitor.ItemPage[T]) {
		none := fmt.Sprintf("there is no %s yet: %s", kind.name, kind.make)
		if pack != "" {
			none = fmt.Sprintf("no %s matches; without --pack all are listed", kind.name)
		}
		table(w, none, list.List, kind.titles, kind.cells)
		if len(list.List) > 0 {
			w.more(list.Next, false)
		}
	})
	only := "only items of this pack"
	if kind.name == "pack" {
		only = "only this pack"
	}
	list.Flags().StringVar(&pack, "pack", "", only)
	list.Flags().StringVar(&cursor, "cursor", "", "continue after this ref")
	return group(&cobra.Command{
		Use:     kind.name,
		Aliases: []string{kind.plural},
		Short:   cmp.Or(kind.short, "Show "+kind.plural),
		Example: fmt.Sprintf("  attune-executor %s list\n  attune-executor %s show %s", kind.name, kind.name,
			kind.example),
	}, append([]*cobra.Command{list, showingRef(a, &cobra.Command{
		Use:     "show REF",
		Short:   "Show everything about one " + kind.name,
		Example: fmt.Sprintf("  attune-executor %s show %s -o yaml", kind.name, kind.example),
		Args:    oneArg("a ref, such as " + kind.example),
	}, kind.name, kind.show, kind.detail)}, more...)...)
}

// from is the file of an item without line and column, if known.
func from(one *monitor.Item) string {
	file := one.File
	for range 2 {
		if i := strings.LastIndexByte(file, ':'); i > 0 {
			file = file[:i]
		}
	}
	switch {
	case file != "":
		return file
	case one.Adhoc:
		return "made by hand"
	}
	return "-"
}

func newPackCommand(a *app) *cobra.Command {
	return newItemCommand(a, itemKind[monitor.PackItem, monitor.PackDetail]{
		name: "pack", plural: "packs", example: "core",
		make: "write a folder with a pack.yaml, and apply it: `attune-executor apply FOLDER`",
		read: (*monitor.Monitor).Packs, show: (*monitor.Monitor).Pack, detail: packPage,
		titles: "PACK, LABEL, VERSION, ACTIONS, TRIGGERS, RULES, POLICIES, FROM",
		cells: func(p *monitor.PackItem) []any {
			return []any{p.Ref, p.Label, p.Version, p.Actions, p.Triggers, p.Rules, p.Policies, from(&p.Item)}
		},
	})
}

func newActionCommand(a *app) *cobra.Command {
	return newItemCommand(a, itemKind[monitor.ActionItem, monitor.ActionDetail]{
		name: "action", plural: "actions", example: "core.echo",
		make: "write one below actions/ of a pack, and apply the pack: `attune-executor apply FOLDER`",
		read: (*monitor.Monitor).Actions, show: (*monitor.Monitor).Action, detail: actionPage,
		titles: "ACTION, PACK, LABEL, RUNS, LIMIT, FROM",
		cells: func(one *monitor.ActionItem) []any {
			limit := "-"
			if one.Threshold != 0 {
				limit = fmt.Sprintf("%d at once", one.Threshold)
			}
			return []any{one.Ref, one.PackRef, one.Label, runs(one), limit, from(&one.Item)}
		},
	})
}

func runs(one *monitor.ActionItem) string {
	if one.WorkflowRef != "" {
		return "workflow " + one.WorkflowRef
	}
	return dash(one.Runtime)
}

func newTriggerCommand(a *app) *cobra.Command {
	return newItemCommand(a, itemKind[monitor.TriggerItem, monitor.TriggerDetail]{
		name: "trigger", plural: "triggers", example: "shop.order_placed",
		make: "write one below triggers/ of a pack, and apply the pack: `attune-executor apply FOLDER`",
		read: (*monitor.Monitor).Triggers, show: (*monitor.Monitor).Trigger, detail: triggerPage,
		titles: "TRIGGER, PACK, LABEL, ENABLED, RULES, FROM",
		cells: func(one *monitor.TriggerItem) []any {
			return []any{one.Ref, dash(one.PackRef), one.Label, yesNo(one.Enabled), one.Rules, from(&one.Item)}
		},
	})
}

// about writes the facts at the beginning of every item, source the ones at its end.
func about(w *page, name string, one *monitor.Item) {
	w.row(name, one.Ref)
	if one.Label != one.Ref {
		w.fact("label", one.Label)
	}
	w.fact("description", one.Description)
	if name != "pack" {
		w.fact("pack", one.PackRef)
	}
}

func source(w *page, one *monitor.Item) {
	w.row("from", cmp.Or(one.File, from(one)))
	w.row("changed", one.Updated.UTC().Format(time.RFC3339))
}

func packPage(w *page, p *monitor.PackDetail) {
	about(w, "pack", &p.Item)
	w.fact("version", p.Version)
	w.fact("standard", onlyYes(p.Standard))
	w.fact("tags", strings.Join(p.Tags, ", "))
	w.fact("depends on", strings.Join(p.Dependencies, ", "))
	source(w, &p.Item)
	for i := range p.Actions {
		w.row("action", p.Actions[i].Ref)
	}
	for i := range p.Triggers {
		w.row("trigger", p.Triggers[i].Ref)
	}
	for i := range p.Policies {
		w.row("policy", p.Policies[i].Ref+": "+policyState(&p.Policies[i]))
	}
	ruleLinks(w, p.Rules)
	w.details(nil, "configuration", p.ConfSchema)
}

func onlyYes(yes bool) string {
	if yes {
		return "yes"
	}
	return ""
}

func ruleLinks(w *page, rules []monitor.RuleLink) {
	for _, one := range rules {
		text := fmt.Sprintf("%s: %s → %s", one.Ref, one.TriggerRef, one.ActionRef)
		if !one.Enabled {
			text += " (disabled)"
		}
		w.row("rule", text)
	}
}

func actionPage(w *page, one *monitor.ActionDetail) {
	seconds := func(name string, n int64) {
		if n != 0 {
			w.row(name, short(time.Duration(n)*time.Second))
		}
	}
	about(w, "action", &one.Item)
	w.fact("runs", strings.TrimSpace(runs(&one.ActionItem)+" "+one.Version))
	w.fact("entry point", one.EntryPoint)
	if one.WorkflowRef == "" {
		w.row("delivered", one.ParameterFormat+" by "+one.ParameterDelivery)
	}
	w.fact("output", one.OutputFormat)
	seconds("timeout", one.TimeoutSeconds)
	seconds("pick-up", one.ScheduledTimeoutSeconds)
	if one.MaxRetries > 0 {
		w.row("retries", one.MaxRetries)
	}
	for _, field := range one.Shown() {
		w.fact(field[0], field[1])
	}
	w.row("now", fmt.Sprintf("%d hold a slot, %d wait: `attune-executor queue show %s`", one.Holds.Active,
		one.Holds.Queued, one.Ref))
	source(w, &one.Item)
	for _, policy := range one.Policies {
		w.row("policy", fmt.Sprintf("%s (%s): %s", policy.Ref, policy.Scope, policy.Title()))
	}
	for _, ref := range one.Workflows {
		w.row("used by", "workflow "+ref)
	}
	ruleLinks(w, one.Rules)
	w.details(nil, "parameters", schemaText(one.ParamSchema), "output", schemaText(one.OutSchema))
}

// schemaText returns nil for a missing schema.
func schemaText(raw []byte) []byte {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func triggerPage(w *page, one *monitor.TriggerDetail) {
	about(w, "trigger", &one.Item)
	w.row("enabled", yesNo(one.Enabled))
	w.fact("sensor", one.SensorRef)
	w.fact("webhook", onlyYes(one.Webhook))
	source(w, &one.Item)
	ruleLinks(w, one.Rules)
	w.details(nil, "parameters", schemaText(one.ParamSchema), "payload", schemaText(one.OutSchema))
}

func newPolicyCommand(a *app) *cobra.Command {
	return newItemCommand(a, itemKind[monitor.PolicyItem, monitor.PolicyDetail]{
		name: "policy", plural: "policies", example: "core.limit",
		short: "Show and delete policies, the limits of executions",
		make: "describe one in a file, `ref: core.limit`, `action: core.sleep`, `threshold: 2`, " +
			"and run `attune-executor apply FILE`",
		read: (*monitor.Monitor).Policies, show: (*monitor.Monitor).Policy, detail: policyPage,
		titles: "POLICY, PACK, ABOUT, LIMIT, IN FORCE, FROM",
		cells: func(p *monitor.PolicyItem) []any {
			force := "yes"
			if p.NewerRef != "" {
				force = "no, " + p.NewerRef + " is newer"
			}
			return []any{p.Ref, dash(p.PackRef), policyScope(p), p.Limit, force, from(&p.Item)}
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
			adaptive += fmt.Sprintf(", runs above %s count as bad",
				short(time.Duration(p.AdaptiveLatencyMS)*time.Millisecond))
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
	table(w, "", p.Queues, "QUEUE, GROUP, STATE, HOLD A SLOT, WAIT, OLDEST", func(q *monitor.Queue) []any {
		return []any{q.ActionRef, dash(q.Group), q.State(), q.Active, q.Queued, ageText(q.Oldest, p.At)}
	})
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
		Long: "Delete a policy: its limit no longer holds. Running executions go on; executions that waited only\n" +
			"for this limit start at once. If a file still describes the policy, the next `apply` of that file\n" +
			"makes it again. Asks first, unless --yes is given.",
		Example: "  attune-executor policy delete core.limit\n" +
			"  attune-executor policy delete core.limit --yes --reason 'the disk is replaced'",
		Args: oneArg("the ref of a policy, such as core.limit"),
		RunE: a.connected(func(c *client, args []string) error {
			order := catalog.PolicyDeletion{
				Ref: args[0], Reason: reason, Actor: triage.LocalActor(),
				Source: "attune-executor",
			}
			return c.deletePolicy(order, flags)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the audit")
	flags.add(cmd.Flags(), "show the policy and its queues, and delete nothing", "do not ask")
	return cmd
}

func policyQuestion(one *monitor.PolicyDetail) *question {
	var wait int
	for i := range one.Queues {
		wait += int(one.Queues[i].Queued)
	}
	what, waits := fmt.Sprintf("policy %s (%s: %s)", one.Ref, policyScope(&one.PolicyItem), one.Limit), waiting(wait)
	return &question{
		unasked: what + " would be deleted, " + waits + " in its queues: --yes deletes, --dry-run shows them",
		text:    fmt.Sprintf("delete %s? %s in its queues. type its ref: ", clean(what), waits),
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
	if err := c.confirm(flags, policyQuestion(one)); err != nil {
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
