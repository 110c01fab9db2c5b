package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/yamldoc"
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
		Short:   "Show events and the rules that they fired",
		Example: "  attune-executor event list --trigger shop.order_placed\n  attune-executor event show 42",
	}, list, showing(a, &cobra.Command{
		Use:   "show ID",
		Short: "Show an event, and for every rule of its trigger whether it fired and why not",
		Long: "Show an event, and for every rule of its trigger whether it fired and why not. Firings are on\n" +
			"record; for the other rules the command evaluates their present conditions.",
		Example: "  attune-executor event show 42",
	}, anEvent, reader((*monitor.Monitor).EventDetail), eventPage))
}

func eventsPage(w *page, list *monitor.EventPage) {
	table(w, "no event matches", list.List, "ID, TRIGGER, AGE, RULES, FIRED, TOOK, NOTE", func(one *monitor.Event) []any {
		compared, fired := "-", "-"
		if one.Matched != nil {
			compared, fired = fmt.Sprint(one.Compared), fmt.Sprint(one.Fired)
			if one.Disabled > 0 {
				fired += fmt.Sprintf(" (%d without execution)", one.Disabled)
			}
		}
		return []any{
			one.ID, one.TriggerRef, short(list.At.Sub(one.Created)), compared, fired,
			spanText(&one.Created, one.Matched), dash(eventNote(one)),
		}
	})
	w.more(list.Next, list.Bounded)
}

func eventNote(one *monitor.Event) string {
	switch {
	case len(one.Failures) > 0:
		return phrase.CutMiddle(one.Failures[0], 80)
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
	const titles = "RULE, VERDICT, ENFORCEMENT, EXECUTION, WHY"
	table(w, "the trigger has no rules", d.Rules, titles, func(one *monitor.RuleVerdict) []any {
		verdict, enforcement, execution := one.Verdict, "-", "-"
		if verdict == monitor.VerdictDisabled {
			verdict = "fired, no execution" // the status of its enforcement reads as that of the rule
		}
		if one.Enforcement != nil {
			enforcement, execution = fmt.Sprint(one.Enforcement.ID), idOrDash(one.Enforcement.Execution)
		}
		return []any{one.RuleRef, verdict, enforcement, execution, one.Why}
	})
	if d.More && len(d.Rules) > 0 {
		w.row("the trigger has more rules")
	}
}

// emitOptions are the flags of `emit`.
type emitOptions struct {
	payload     string
	payloadFile string
	rule        string
	waitFlags
}

func newEmitCommand(a *app) *cobra.Command {
	options := &emitOptions{}
	cmd := &cobra.Command{
		Use:   "emit TRIGGER",
		Short: "Emit an event of a trigger",
		Long: "Emit an event of a trigger. It fires the rules whose conditions match its payload. The payload must\n" +
			"fit the out_schema of the trigger. With --wait the command lists the fired rules after their\n" +
			"executions have ended, and exits with 0 only if all of them completed.",
		Example: "  attune-executor emit shop.order_placed --payload '{\"order\": 7}' --wait\n" +
			"  attune-executor emit shop.order_placed --payload-file order.yaml --rule shop.deliver",
		Args: oneArg("the ref of a trigger, such as shop.order_placed"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.emit(cmd, args[0], options) },
	}
	flags := cmd.Flags()
	flags.StringVar(&options.payload, "payload", "",
		"the payload as JSON; @FILE reads it from a file, @- from standard input")
	flags.StringVar(&options.payloadFile, "payload-file", "",
		"a YAML or JSON file with the payload, - for the standard input")
	flags.StringVar(&options.rule, "rule", "", "the only rule that it may fire")
	options.waitFlags.add(flags, "wait until the executions of the fired rules have ended")
	return cmd
}

func (o *emitOptions) readPayload(stdin io.Reader) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(o.payload, "@")
	switch {
	case o.payload != "" && o.payloadFile != "":
		return nil, usageErrorf("--payload and --payload-file exclude each other")
	case isFile && name == "":
		return nil, usageErrorf("--payload @ names no file: write @FILE, or @- for the standard input")
	case isFile:
		return readPayloadFile(name, stdin)
	case o.payload != "":
		_, err := parseJSON("payload", o.payload)
		if errors.Is(err, errNotJSON) {
			err = usageErrorf("--payload is not JSON: quote it, such as '{\"order\": 7}'")
		}
		return json.RawMessage(o.payload), err
	case o.payloadFile == "":
		return nil, nil
	}
	return readPayloadFile(o.payloadFile, stdin)
}

func readPayloadFile(name string, stdin io.Reader) (json.RawMessage, error) {
	raw, err := readFile("payload", name, stdin, jsonvalue.Bytes)
	if err != nil {
		return nil, err
	}
	value, err := yamldoc.Parse(name, raw)
	if err != nil {
		return nil, usageErrorf("%w", err)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, usageErrorf("%s cannot be written as JSON: %w", name, err)
	}
	return encoded, nil
}

// emitResult is the output of `emit`.
type emitResult struct {
	ID      int64  `json:"id"`
	Trigger string `json:"trigger"`
	// Matches counts the rules that it fires in their present state.
	Matches int                   `json:"matches"`
	Note    string                `json:"note,omitempty"`
	Rules   []monitor.RuleVerdict `json:"rules"`
}

func (a *app) emit(cmd *cobra.Command, trigger string, options *emitOptions) error {
	if err := options.check(); err != nil {
		return err
	}
	payload, err := options.readPayload(cmd.InOrStdin())
	if err != nil {
		return err
	}
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	event := submit.Event{TriggerRef: trigger, Payload: payload, RuleRef: options.rule}
	if id, err := strconv.ParseInt(os.Getenv("ATTUNE_EXEC_ID"), 10, 64); err == nil {
		event.Execution = id // an action runs this command
	}
	done, err := c.emitEvent(cmd.Context(), event)
	if err != nil {
		return err
	}
	if options.wait {
		return a.awaitEvent(cmd, c, done, options.timeout)
	}
	detail, err := c.monitor().EventDetail(cmd.Context(), done.ID)
	if err != nil {
		return err
	}
	return a.write(cmd, emitted(done, detail), func(w *page) {
		w.rowf("event %d emitted: %s; look with `attune-executor event show %d`", done.ID, matchWords(done, detail),
			done.ID)
	})
}

func emitted(done submit.Emitted, detail *monitor.EventDetail) emitResult {
	return emitResult{
		ID: done.ID, Trigger: done.TriggerRef, Matches: len(firing(detail)), Note: detail.Note,
		Rules: detail.Rules,
	}
}

// firing returns the rules that an event fires or has fired.
func firing(detail *monitor.EventDetail) []monitor.RuleVerdict {
	var list []monitor.RuleVerdict
	for _, one := range detail.Rules {
		if slices.Contains([]string{monitor.VerdictFired, monitor.VerdictDisabled, monitor.VerdictWaiting},
			one.Verdict) {
			list = append(list, one)
		}
	}
	return list
}

func matchWords(done submit.Emitted, detail *monitor.EventDetail) string {
	switch matches := len(firing(detail)); {
	case !done.Enabled:
		return fmt.Sprintf("trigger %s is disabled and fires no rule", done.TriggerRef)
	case len(detail.Rules) == 0:
		return fmt.Sprintf("trigger %s has no rules", done.TriggerRef)
	default:
		return fmt.Sprintf("%d of %d rules match", matches, len(detail.Rules))
	}
}

// emitEvent stores the event and publishes it.
func (c *client) emitEvent(ctx context.Context, event submit.Event) (submit.Emitted, error) {
	publisher, err := c.openPublisher(ctx, "attune-executor emit")
	if err != nil {
		return submit.Emitted{}, err
	}
	defer publisher.close()
	submitter, err := c.submitter(publisher)
	if err != nil {
		return submit.Emitted{}, err
	}
	done, err := submitter.EmitEvent(ctx, event)
	if err != nil {
		return done, emitError(err)
	}
	c.noteStored(ctx, publisher, c.awaitPublished(ctx, done.OutboxID), fmt.Sprintf("event %d", done.ID),
		"fires its rules")
	return done, nil
}

// emitError explains an error of an event, with its exit code.
func emitError(err error) error {
	unknown, isUnknown := errors.AsType[*submit.UnknownTriggerError](err)
	_, isInvalid := errors.AsType[*submit.InvalidPayloadError](err)
	_, isMismatch := errors.AsType[*submit.RuleMismatchError](err)
	switch {
	case isUnknown && unknown.Nearest == "":
		return failedErrorf("%w: apply the pack that has it", err)
	case isUnknown:
		return failedErrorf("%w", err)
	case isInvalid, errors.Is(err, submit.ErrPayload):
		return usageErrorf("%w", err)
	case isMismatch:
		return failedErrorf("%w: `attune-executor rule list` shows them", err)
	case store.ClassOf(err) == store.ClassUnknown:
		return failedErrorf("%w: whether it was emitted is unknown, look with `attune-executor event list`", err)
	}
	return err
}

// awaitEvent waits for the ends of the fired executions, and prints the event.
func (a *app) awaitEvent(cmd *cobra.Command, c *client, done submit.Emitted, timeout time.Duration) error {
	ctx, cancel := within(cmd.Context(), timeout)
	defer cancel()
	view := c.monitor()
	for {
		detail, err := view.EventDetail(ctx, done.ID)
		if err == nil && detail.Matched != nil && allEnded(detail) {
			if err := a.write(cmd, emitted(done, detail), func(w *page) { eventPage(w, detail) }); err != nil {
				return err
			}
			return failures(detail)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil || !supervise.Sleep(ctx, 100*time.Millisecond) {
			return failedErrorf(
				"the executions of event %d have not ended yet: they go on, look with `attune-executor event show %d`",
				done.ID, done.ID)
		}
	}
}

func allEnded(detail *monitor.EventDetail) bool {
	for _, one := range detail.Rules {
		if one.Verdict != monitor.VerdictFired {
			continue
		}
		status, err := lifecycle.ParseStatus(one.Enforcement.ExecutionStatus)
		if one.Enforcement.Execution == 0 || err != nil || !status.Terminal() {
			return false
		}
	}
	return true
}

// failures returns an error if a fired execution did not complete.
func failures(detail *monitor.EventDetail) error {
	for _, one := range detail.Rules {
		switch {
		case one.Verdict == monitor.VerdictDisabled:
			return failedErrorf("rule %s could not be carried out: %s", one.RuleRef, one.Why)
		case one.Verdict == monitor.VerdictFired &&
			one.Enforcement.ExecutionStatus != string(lifecycle.StatusCompleted):
			return failedErrorf("rule %s: %s: look with `attune-executor execution show %d`", one.RuleRef, one.Why,
				one.Enforcement.Execution)
		}
	}
	return nil
}

func newEnforcementCommand(a *app) *cobra.Command {
	filter, cursor := monitor.EnforcementFilter{}, int64(0)
	list := reading(a, &cobra.Command{
		Use:     "list",
		Short:   "List enforcements, the newest first",
		Example: "  attune-executor enforcement list --status disabled --rule shop.deliver -o json",
	}, func() error { return checkPage(filter.Limit, &filter) },
		func(c *client, _ []string) (*monitor.EnforcementPage, error) {
			return c.monitor().Enforcements(c.cmd.Context(), filter, cursor)
		}, enforcementsPage)
	flags := list.Flags()
	flags.StringVar(&filter.Rule, "rule", "", "only enforcements of this rule")
	flags.StringVar(&filter.Status, "status", "", "only enforcements with this status: created, processed or disabled")
	flags.Int64Var(&filter.Event, "event", 0, "only enforcements of this event")
	pageFlags(flags, &filter.Limit, &cursor)
	words(list, "status", monitor.EnforcementStatuses...)
	return group(&cobra.Command{
		Use:     "enforcement",
		Aliases: []string{"enforcements"},
		Short:   "Show enforcements: the rules that events have fired",
		Example: "  attune-executor enforcement list --status disabled\n  attune-executor enforcement show 42",
	}, list, showing(a, &cobra.Command{
		Use:     "show ID",
		Short:   "Show an enforcement, with its parameters and its execution",
		Example: "  attune-executor enforcement show 42 -o yaml",
	}, anEnforcement, reader((*monitor.Monitor).Enforcement), enforcementPage))
}

func enforcementsPage(w *page, list *monitor.EnforcementPage) {
	const titles = "ID, RULE, EVENT, STATUS, AGE, EXECUTION, NOTE"
	table(w, "no enforcement matches", list.List, titles, func(one *monitor.Enforcement) []any {
		execution := strings.TrimSpace(idOrDash(one.Execution) + " " + one.ExecutionStatus)
		age := short(list.At.Sub(one.Created))
		return []any{one.ID, one.RuleRef, one.Event, one.Status, age, execution, dash(one.Error)}
	})
	w.more(list.Next, list.Bounded)
}

func enforcementPage(w *page, one *monitor.EnforcementDetail) {
	execution := ""
	if one.Execution != 0 {
		execution = fmt.Sprintf("%d (%s), %s", one.Execution, one.ActionRef, one.ExecutionStatus)
	}
	w.details([][2]string{
		{"enforcement", strconv.FormatInt(one.ID, 10)},
		{"rule", one.RuleRef},
		{"trigger", one.TriggerRef},
		{"event", strconv.FormatInt(one.Event, 10)},
		{"status", one.Status},
		{"error", one.Error},
		{"note", one.Note},
		{"matched", one.Matched},
		{"now", one.Now},
		{"created", one.Created.UTC().Format(time.RFC3339)},
		{"resolved", optTime(one.ResolvedAt)},
		{"execution", execution},
	}, "conditions", one.Conditions, "parameters", one.Config)
}

func newRuleCommand(a *app) *cobra.Command {
	var trigger, cursor string
	list := reading(a, &cobra.Command{
		Use:   "list",
		Short: "List rules, with the numbers of their recent and failed firings",
		Long: "List rules, with the numbers of their recent and failed firings, among the newest " +
			strconv.Itoa(monitor.RecentFirings) + " of each rule.",
		Example: "  attune-executor rule list --trigger shop.order_placed -o json",
	}, unchecked, func(c *client, _ []string) (*monitor.RulePage, error) {
		return c.monitor().Rules(c.cmd.Context(), trigger, cursor)
	}, func(w *page, list *monitor.RulePage) {
		none := "no rule matches"
		if trigger == "" && cursor == "" {
			none = "there is no rule yet: write one below rules/ of a pack, and apply the pack: " +
				"`attune-executor apply FOLDER`"
		}
		rulesPage(w, list, none)
	})
	list.Flags().StringVar(&trigger, "trigger", "", "only rules of this trigger")
	list.Flags().StringVar(&cursor, "cursor", "", "continue after this ref")
	return group(&cobra.Command{
		Use:     "rule",
		Aliases: []string{"rules"},
		Short:   "Show rules and the outcome of their firings",
		Example: "  attune-executor rule list --trigger shop.order_placed\n  attune-executor rule show shop.deliver",
	}, list, showingRef(a, &cobra.Command{
		Use:     "show REF",
		Short:   "Show a rule, with its conditions and parameters",
		Example: "  attune-executor rule show shop.deliver",
		Args:    oneArg("the ref of a rule, such as shop.deliver"),
	}, "rule", (*monitor.Monitor).Rule, rulePage))
}

func rulesPage(w *page, list *monitor.RulePage, none string) {
	table(w, none, list.List,
		"RULE, TRIGGER, ACTION, ENABLED, LAST FIRED, FIRED, NO EXECUTION, NOTE", func(one *monitor.Rule) []any {
			return []any{
				one.Ref, one.TriggerRef, one.ActionRef, yesNo(one.Enabled), lastFired(one, list.At), firings(one),
				one.Disabled, dash(one.Note),
			}
		})
	w.more(list.Next, false)
}

func lastFired(one *monitor.Rule, at time.Time) string {
	if one.LastFired == nil {
		return "never"
	}
	return short(at.Sub(*one.LastFired)) + " ago"
}

func firings(one *monitor.Rule) string {
	if one.Fired >= monitor.RecentFirings {
		return strconv.Itoa(one.Fired) + "+"
	}
	return strconv.Itoa(one.Fired)
}

func rulePage(w *page, one *monitor.RuleDetail) {
	w.details([][2]string{
		{"rule", one.Ref},
		{"label", one.Label},
		{"description", one.Description},
		{"pack", one.PackRef},
		{"trigger", one.TriggerRef},
		{"action", one.ActionRef},
		{"enabled", yesNo(one.Enabled)},
		{"note", one.Note},
		{"owner", one.Owner},
		{"last fired", lastFired(&one.Rule, one.At)},
		{"fired", fmt.Sprintf("%s, %d of them could not be carried out", firings(&one.Rule), one.Disabled)},
		{"changed", one.Updated.UTC().Format(time.RFC3339)},
	}, "conditions", one.Conditions, "parameters", one.Params)
}
