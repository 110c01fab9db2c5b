package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
)

func newEventCommand(a *app) *cobra.Command {
	filter, cursor := monitor.EventFilter{}, int64(0)
	list := reading(a, &cobra.Command{
		Use:     "list",
		Short:   "List events, the newest first",
		Example: "  attune-executor event list --trigger shop.order_placed --limit 50 -o json",
	}, func() error { return checkPage(filter.Limit) }, func(c *client, _ []string) (*monitor.EventPage, error) {
		return c.monitor().Events(c.cmd.Context(), filter, cursor)
	}, eventsPage)
	list.Flags().StringVar(&filter.Trigger, "trigger", "", "only events of this trigger")
	pageFlags(list.Flags(), &filter.Limit, &cursor)
	return group(&cobra.Command{
		Use:     "event",
		Aliases: []string{"events"},
		Short:   "Look at events, and at why they fired which rules",
		Example: "  attune-executor event list --trigger shop.order_placed\n  attune-executor event show 42",
	}, list, showing(a, &cobra.Command{
		Use:   "show ID",
		Short: "Show an event, and for every rule of its trigger whether it fired and why not",
		Long: "Show an event, and for every rule of its trigger whether it fired and why not. What has fired is on record; why the\n" +
			"others have not is judged by the rules as they are now.",
		Example: "  attune-executor event show 42",
	}, anEvent, (*monitor.Monitor).EventDetail, eventPage))
}

func eventsPage(w *page, list *monitor.EventPage) {
	matched := func(value func(one *monitor.Event) any) func(one *monitor.Event) any {
		return func(one *monitor.Event) any {
			if one.Matched == nil {
				return "-"
			}
			return value(one)
		}
	}
	table(w, "no event matches", list.List,
		col("ID", func(one *monitor.Event) any { return one.ID }),
		col("TRIGGER", func(one *monitor.Event) any { return one.TriggerRef }),
		col("AGE", func(one *monitor.Event) any { return short(list.At.Sub(one.Created)) }),
		col("RULES", matched(func(one *monitor.Event) any { return one.Compared })),
		col("FIRED", matched(func(one *monitor.Event) any {
			if one.Disabled > 0 {
				return fmt.Sprintf("%d (%d disabled)", one.Fired, one.Disabled)
			}
			return one.Fired
		})),
		col("TOOK", func(one *monitor.Event) any { return spanText(&one.Created, one.Matched) }),
		col("NOTE", func(one *monitor.Event) any { return dash(eventNote(one)) }))
	w.more(list.Next, list.Bounded)
}

func eventNote(one *monitor.Event) string {
	switch {
	case len(one.Failures) > 0:
		return cut(one.Failures[0], 80)
	case one.Matched == nil:
		return "not compared with the rules"
	case one.RuleRef != "":
		return "for rule " + one.RuleRef
	}
	return ""
}

func eventPage(w *page, d *monitor.EventDetail) {
	matched := "no"
	if d.Matched != nil {
		matched = fmt.Sprintf("%s, %s after it", d.Matched.UTC().Format(time.RFC3339), short(d.Matched.Sub(d.Created)))
	}
	w.facts([][2]string{
		{"event", strconv.FormatInt(d.ID, 10)},
		{"trigger", d.TriggerRef},
		{"for rule", d.RuleRef},
		{"source", d.Event.Source},
		{"created", d.Created.UTC().Format(time.RFC3339)},
		{"matched", matched},
		{"note", d.Note},
	})
	if len(d.Payload) > 0 {
		w.text("payload\n" + indent(pretty(d.Payload)))
	}
	table(w, "the trigger has no rules", d.Rules,
		col("RULE", func(one *monitor.RuleVerdict) any { return one.RuleRef }),
		col("VERDICT", func(one *monitor.RuleVerdict) any { return one.Verdict }),
		col("ENFORCEMENT", func(one *monitor.RuleVerdict) any {
			if one.Enforcement == nil {
				return "-"
			}
			return one.Enforcement.ID
		}),
		col("EXECUTION", func(one *monitor.RuleVerdict) any {
			if one.Enforcement == nil || one.Enforcement.Execution == 0 {
				return "-"
			}
			return one.Enforcement.Execution
		}),
		col("WHY", func(one *monitor.RuleVerdict) any { return one.Why }))
	if d.More && len(d.Rules) > 0 {
		w.row("the trigger has more rules")
	}
}
