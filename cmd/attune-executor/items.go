package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
)

// itemKind is a kind of item with its list and its details; T is the item, D the details.
type itemKind[T, D any] struct {
	name, plural, example string
	short                 string // "Look at " the plural if empty
	// make says how to make the first one, where there is none.
	make    string
	read    func(m *monitor.Monitor, ctx context.Context, pack, cursor string) (*monitor.ItemPage[T], error)
	columns []column[T]
	show    func(m *monitor.Monitor, ctx context.Context, ref string) (*D, error)
	detail  func(w *page, one *D)
}

func newItemCommand[T, D any](a *app, kind itemKind[T, D], more ...*cobra.Command) *cobra.Command {
	var pack, cursor string
	list := reading(a, &cobra.Command{
		Use:     "list",
		Short:   "List " + kind.plural + " by ref",
		Example: fmt.Sprintf("  attune-executor %s list --pack deploy -o json", kind.name),
	}, unchecked, func(c *client, _ []string) (*monitor.ItemPage[T], error) {
		return kind.read(c.monitor(), c.cmd.Context(), pack, cursor)
	}, func(w *page, list *monitor.ItemPage[T]) {
		none := fmt.Sprintf("there is no %s yet: %s", kind.name, kind.make)
		if pack != "" {
			none = fmt.Sprintf("no %s matches; without --pack all are listed", kind.name)
		}
		table(w, none, list.List, kind.columns...)
		if list.Next != "" && len(list.List) > 0 {
			w.row("more: --cursor " + list.Next)
		}
	})
	only := "only this pack's"
	if kind.name == "pack" {
		only = "only this pack"
	}
	list.Flags().StringVar(&pack, "pack", "", only)
	list.Flags().StringVar(&cursor, "cursor", "", "go on behind this ref")
	return group(&cobra.Command{
		Use:     kind.name,
		Aliases: []string{kind.plural},
		Short:   cmp.Or(kind.short, "Look at "+kind.plural),
		Example: fmt.Sprintf("  attune-executor %s list\n  attune-executor %s show %s", kind.name, kind.name, kind.example),
	}, append([]*cobra.Command{list, showingRef(a, &cobra.Command{
		Use:     "show REF",
		Short:   "Show everything about one " + kind.name,
		Example: fmt.Sprintf("  attune-executor %s show %s -o yaml", kind.name, kind.example),
		Args:    oneArg("a ref, such as " + kind.example),
	}, kind.name, kind.show, kind.detail)}, more...)...)
}

// from says where an item comes from: its file without line and column, if that is known.
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
		columns: []column[monitor.PackItem]{
			col("PACK", func(p *monitor.PackItem) any { return p.Ref }),
			col("LABEL", func(p *monitor.PackItem) any { return p.Label }),
			col("VERSION", func(p *monitor.PackItem) any { return p.Version }),
			col("ACTIONS", func(p *monitor.PackItem) any { return p.Actions }),
			col("TRIGGERS", func(p *monitor.PackItem) any { return p.Triggers }),
			col("RULES", func(p *monitor.PackItem) any { return p.Rules }),
			col("POLICIES", func(p *monitor.PackItem) any { return p.Policies }),
			col("FROM", func(p *monitor.PackItem) any { return from(&p.Item) }),
		},
	})
}

func newActionCommand(a *app) *cobra.Command {
	return newItemCommand(a, itemKind[monitor.ActionItem, monitor.ActionDetail]{
		name: "action", plural: "actions", example: "core.echo",
		make: "write one below actions/ of a pack, and apply the pack: `attune-executor apply FOLDER`",
		read: (*monitor.Monitor).Actions, show: (*monitor.Monitor).Action, detail: actionPage,
		columns: []column[monitor.ActionItem]{
			col("ACTION", func(one *monitor.ActionItem) any { return one.Ref }),
			col("PACK", func(one *monitor.ActionItem) any { return one.PackRef }),
			col("LABEL", func(one *monitor.ActionItem) any { return one.Label }),
			col("RUNS", func(one *monitor.ActionItem) any { return runs(one) }),
			col("LIMIT", func(one *monitor.ActionItem) any {
				if one.Threshold == 0 {
					return "-"
				}
				return fmt.Sprintf("%d at once", one.Threshold)
			}),
			col("FROM", func(one *monitor.ActionItem) any { return from(&one.Item) }),
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
		columns: []column[monitor.TriggerItem]{
			col("TRIGGER", func(one *monitor.TriggerItem) any { return one.Ref }),
			col("PACK", func(one *monitor.TriggerItem) any { return dash(one.PackRef) }),
			col("LABEL", func(one *monitor.TriggerItem) any { return one.Label }),
			col("ENABLED", func(one *monitor.TriggerItem) any { return yesNo(one.Enabled) }),
			col("RULES", func(one *monitor.TriggerItem) any { return one.Rules }),
			col("FROM", func(one *monitor.TriggerItem) any { return from(&one.Item) }),
		},
	})
}

// about are the facts that every item begins with; source those that it ends with.
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
	document := func(name string, raw []byte) {
		if text := string(raw); text != "{}" && text != "[]" && text != "null" {
			w.fact(name, text)
		}
	}
	about(w, "action", &one.Item)
	w.fact("runs", strings.TrimSpace(runs(&one.ActionItem)+" "+one.RuntimeVersion))
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
	document("needs", one.RequiredRuntimes)
	document("selector", one.Selector)
	document("tolerations", one.Tolerations)
	document("affinity", one.Affinity)
	w.row("now", fmt.Sprintf("%d hold a slot, %d wait: `attune-executor queue show %s`", one.Holds.Active, one.Holds.Queued, one.Ref))
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

// schemaText leaves out a schema that is not there.
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
