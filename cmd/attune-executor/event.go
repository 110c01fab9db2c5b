package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
)

func newEventCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "event",
		Aliases: []string{"events"},
		Short:   "Look at events, and at why they fired which rules",
		Example: "  attune-executor event list --trigger shop.order_placed\n  attune-executor event show 42",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	filter, cursor := monitor.EventFilter{}, int64(0)
	list := &cobra.Command{
		Use:     "list",
		Short:   "List events, the newest first",
		Example: "  attune-executor event list --trigger shop.order_placed --limit 50 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 1 {
				return usageErrorf("--limit must be at least 1")
			}
			return a.listEvents(cmd, filter, cursor)
		},
	}
	list.Flags().StringVar(&filter.Trigger, "trigger", "", "only events of this trigger")
	list.Flags().IntVar(&filter.Limit, "limit", 20, "how many to list")
	list.Flags().Int64Var(&cursor, "cursor", 0, "go on below this id")
	show := &cobra.Command{
		Use:   "show ID",
		Short: "Show an event, and for every rule of its trigger whether it fired and why not",
		Long: "Show an event, and for every rule of its trigger whether it fired and why not. What has fired is on record; why the\n" +
			"others have not is judged by the rules as they are now.",
		Example: "  attune-executor event show 42",
		Args:    oneArg("the id of an event"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.showEvent(cmd, args[0]) },
	}
	cmd.AddCommand(list, show)
	return cmd
}

// numberArg reads the id of a thing.
func numberArg(text, what string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usageErrorf("%q is not the id of an %s", text, what)
	}
	return id, nil
}

func (a *app) listEvents(cmd *cobra.Command, filter monitor.EventFilter, cursor int64) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	page, err := c.monitor().Events(cmd.Context(), filter, cursor)
	if err != nil {
		return err
	}
	return a.print(cmd, page, func(w io.Writer) error {
		if len(page.List) == 0 {
			if err := row(w, "no event matches"); err != nil {
				return err
			}
		} else if err := row(w, "ID", "TRIGGER", "AGE", "RULES", "FIRED", "TOOK", "NOTE"); err != nil {
			return err
		}
		for i := range page.List {
			one := &page.List[i]
			if err := row(w, one.ID, one.TriggerRef, short(page.At.Sub(one.Created)), compared(one), fired(one), eventTook(one), dash(eventNote(one))); err != nil {
				return err
			}
		}
		return more(w, page.Next, page.Bounded)
	})
}

// more says how a list goes on.
func more(w io.Writer, next int64, bounded bool) error {
	switch {
	case bounded:
		return row(w, fmt.Sprintf("the search stopped at its bound; more may match: --cursor %d goes on", next))
	case next != 0:
		return row(w, fmt.Sprintf("more: --cursor %d", next))
	}
	return nil
}

func compared(one *monitor.Event) string {
	if one.Matched == nil {
		return "-"
	}
	return strconv.Itoa(one.Compared)
}

func fired(one *monitor.Event) string {
	if one.Matched == nil {
		return "-"
	}
	text := strconv.Itoa(one.Fired)
	if one.Disabled > 0 {
		text += fmt.Sprintf(" (%d disabled)", one.Disabled)
	}
	return text
}

func eventTook(one *monitor.Event) string {
	if one.Matched == nil {
		return "-"
	}
	return short(one.Matched.Sub(one.Created))
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

func (a *app) showEvent(cmd *cobra.Command, arg string) error {
	id, err := numberArg(arg, "event")
	if err != nil {
		return err
	}
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	detail, err := c.monitor().EventDetail(cmd.Context(), id)
	if errors.Is(err, monitor.ErrNotFound) {
		return failedErrorf("there is no event %d: `attune-executor event list` shows the newest", id)
	}
	if err != nil {
		return err
	}
	return a.print(cmd, detail, func(w io.Writer) error { return eventTable(w, detail) })
}

func eventTable(w io.Writer, d *monitor.EventDetail) error {
	matched := "no"
	if d.Matched != nil {
		matched = fmt.Sprintf("%s, %s after it", d.Matched.UTC().Format(time.RFC3339), short(d.Matched.Sub(d.Created)))
	}
	for _, line := range [][2]string{
		{"event", strconv.FormatInt(d.ID, 10)},
		{"trigger", d.TriggerRef},
		{"for rule", d.RuleRef},
		{"source", d.Event.Source},
		{"created", d.Created.UTC().Format(time.RFC3339)},
		{"matched", matched},
		{"note", d.Note},
	} {
		if line[1] == "" {
			continue
		}
		if err := row(w, line[0], line[1]); err != nil {
			return err
		}
	}
	if len(d.Payload) > 0 {
		if _, err := fmt.Fprintf(w, "payload\n%s\n", indent(pretty(d.Payload))); err != nil {
			return err
		}
	}
	if len(d.Rules) == 0 {
		return row(w, "the trigger has no rules")
	}
	if err := row(w, "RULE", "VERDICT", "ENFORCEMENT", "EXECUTION", "WHY"); err != nil {
		return err
	}
	for _, one := range d.Rules {
		enforcement, execution := "-", "-"
		if one.Enforcement != nil {
			enforcement = strconv.FormatInt(one.Enforcement.ID, 10)
			if one.Enforcement.Execution != 0 {
				execution = strconv.FormatInt(one.Enforcement.Execution, 10)
			}
		}
		if err := row(w, one.RuleRef, one.Verdict, enforcement, execution, one.Why); err != nil {
			return err
		}
	}
	if d.More {
		return row(w, "the trigger has more rules")
	}
	return nil
}

// indent sets a text off from what stands before it.
func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
