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

// about are the lines that every item begins with.
func about(name string, one *monitor.Item, lines ...[2]string) [][2]string {
	label := one.Label
	if label == one.Ref {
		label = ""
	}
	begin := [][2]string{{name, one.Ref}, {"label", label}, {"description", one.Description}}
	if name != "pack" {
		begin = append(begin, [2]string{"pack", one.PackRef})
	}
	where := from(one)
	if one.File != "" {
		where = one.File
	}
	return append(append(begin, lines...), [2]string{"from", where}, [2]string{"changed", one.Updated.UTC().Format(time.RFC3339)})
}

func packPage(w *page, p *monitor.PackDetail) {
	standard := ""
	if p.Standard {
		standard = "yes"
	}
	lines := about("pack", &p.Item, [2]string{"version", p.Version}, [2]string{"standard", standard},
		[2]string{"tags", strings.Join(p.Tags, ", ")}, [2]string{"depends on", strings.Join(p.Dependencies, ", ")})
	for i := range p.Actions {
		lines = append(lines, [2]string{"action", p.Actions[i].Ref})
	}
	for i := range p.Triggers {
		lines = append(lines, [2]string{"trigger", p.Triggers[i].Ref})
	}
	for i := range p.Policies {
		lines = append(lines, [2]string{"policy", p.Policies[i].Ref + ": " + policyState(&p.Policies[i])})
	}
	w.details(append(lines, ruleLines(p.Rules)...), "configuration", p.ConfSchema)
}

func ruleLines(rules []monitor.RuleLink) [][2]string {
	var lines [][2]string
	for _, one := range rules {
		text := fmt.Sprintf("%s: %s → %s", one.Ref, one.TriggerRef, one.ActionRef)
		if !one.Enabled {
			text += " (disabled)"
		}
		lines = append(lines, [2]string{"rule", text})
	}
	return lines
}

func actionPage(w *page, one *monitor.ActionDetail) {
	seconds := func(n int64) string {
		if n == 0 {
			return ""
		}
		return short(time.Duration(n) * time.Second)
	}
	format := func(raw []byte) string {
		if text := string(raw); text != "{}" && text != "[]" && text != "null" {
			return text
		}
		return ""
	}
	retries := ""
	if one.MaxRetries > 0 {
		retries = fmt.Sprint(one.MaxRetries)
	}
	delivered := one.ParameterFormat + " by " + one.ParameterDelivery
	if one.WorkflowRef != "" {
		delivered = ""
	}
	lines := about("action", &one.Item,
		[2]string{"runs", strings.TrimSpace(runs(&one.ActionItem) + " " + one.RuntimeVersion)}, [2]string{"entry point", one.EntryPoint},
		[2]string{"delivered", delivered}, [2]string{"output", one.OutputFormat},
		[2]string{"timeout", seconds(one.TimeoutSeconds)}, [2]string{"pick-up", seconds(one.ScheduledTimeoutSeconds)},
		[2]string{"retries", retries}, [2]string{"needs", format(one.RequiredRuntimes)}, [2]string{"selector", format(one.Selector)},
		[2]string{"tolerations", format(one.Tolerations)}, [2]string{"affinity", format(one.Affinity)},
		[2]string{"now", fmt.Sprintf("%d hold a slot, %d wait: `attune-executor queue show %s`", one.Holds.Active, one.Holds.Queued, one.Ref)})
	for _, policy := range one.Policies {
		lines = append(lines, [2]string{"policy", fmt.Sprintf("%s (%s): %s", policy.Ref, policy.Scope, policy.Title())})
	}
	for _, ref := range one.Workflows {
		lines = append(lines, [2]string{"used by", "workflow " + ref})
	}
	w.details(append(lines, ruleLines(one.Rules)...), "parameters", schemaText(one.ParamSchema), "output", schemaText(one.OutSchema))
}

// schemaText leaves out a schema that is not there.
func schemaText(raw []byte) []byte {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func triggerPage(w *page, one *monitor.TriggerDetail) {
	webhook := ""
	if one.Webhook {
		webhook = "yes"
	}
	lines := about("trigger", &one.Item, [2]string{"enabled", yesNo(one.Enabled)}, [2]string{"sensor", one.SensorRef}, [2]string{"webhook", webhook})
	w.details(append(lines, ruleLines(one.Rules)...), "parameters", schemaText(one.ParamSchema), "payload", schemaText(one.OutSchema))
}
