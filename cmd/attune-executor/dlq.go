package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

func newDeadLettersCommand(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "dlq",
		Aliases: []string{"dead-letters"},
		Short:   "Show dead letters, and decide about them",
		Long: "Show dead letters, the messages that expired, were rejected or could not be processed, and decide\n" +
			"about the waiting ones. Each is a row of the ledger, with its evidence and its decision.",
		Example: "  attune-executor dlq list --open\n  attune-executor dlq show 12\n" +
			"  attune-executor dlq requeue 12 --reason 'the worker is back'",
	}, newDLQListCommand(a), showing(a, &cobra.Command{
		Use:     "show ID",
		Short:   "Show one dead letter: the message, its execution as it is now, and what a requeue would do",
		Example: "  attune-executor dlq show 12\n  attune-executor dlq show 12 -o json | jq .body",
	}, aDeadLetter, func(c *client, ctx context.Context, id int64) (*monitor.LedgerDetail, error) {
		return ofLedger(c, func(m *monitor.Monitor) (*monitor.LedgerDetail, error) { return m.DeadLetter(ctx, id) })
	}, deadLetterPage),
		newDLQExportCommand(a), newDLQStatsCommand(a))
}

// deadLetterFlags adds the common filters of list, discard-all and export.
func deadLetterFlags(flags *pflag.FlagSet, f *monitor.DeadLetterFilter) {
	flags.StringVar(&f.Reason, "reason", "",
		"only dead letters with this reason: expired, rejected, maxlen, delivery_limit, poison, unknown")
	flags.StringVar(&f.Action, "action", "", "only dead letters about actions whose ref matches; * stands for anything")
	flags.StringVar(&f.Worker, "worker", "", "only dead letters to this worker, by id or name")
	flags.StringVar(&f.Type, "type", "", "only dead letters of this message type, such as ExecutionRequested")
	flags.Int64Var(&f.Execution, "execution", 0, "only dead letters about this execution")
	flags.Var(phrase.SpanFlag{To: &f.MaxAge, Age: true}, "since",
		"only dead letters stored within this time, such as 12h or 7d")
	flags.Var(phrase.SpanFlag{To: &f.MinAge, Age: true}, "older-than", "only dead letters stored longer ago than this")
}

// decisionFlags adds the filters by decision.
func decisionFlags(flags *pflag.FlagSet, f *monitor.DeadLetterFilter) {
	flags.BoolVar(&f.Open, "open", false, "only undecided dead letters")
	flags.BoolVar(&f.Decided, "decided", false, "only decided dead letters")
	flags.StringSliceVar(&f.Decisions, "decision", nil,
		"only these decisions: "+strings.Join(monitor.DeadLetterDecisions, ", "))
}

func newDLQListCommand(a *app) *cobra.Command {
	filter := monitor.DeadLetterFilter{}
	cursor := int64(0)
	cmd := reading(a, &cobra.Command{
		Use:   "list",
		Short: "List dead letters, the newest first",
		Long: "List the dead letters of the ledger, the newest first. Messages in the broker's queue are not in the\n" +
			"ledger while no engine handles them (dead_letter.enabled false, or none runs): `attune-executor dlq\n" +
			"take` takes them into it.",
		Example: "  attune-executor dlq list --open\n" +
			"  attune-executor dlq list --decision failed --worker worker-node-01 --since 12h",
	}, func() error { return checkPage(filter.Limit, &filter) }, func(c *client, _ []string) (*deadLettersView, error) {
		list, err := ofLedger(c, func(m *monitor.Monitor) (*monitor.LedgerPage, error) {
			return m.LedgerList(c.cmd.Context(), filter, cursor)
		})
		return &deadLettersView{LedgerPage: list, recorded: c.cfg.MessageQueue.RabbitMQ.DeadLetter.Enabled}, err
	}, deadLettersPage)
	flags := cmd.Flags()
	decisionFlags(flags, &filter)
	deadLetterFlags(flags, &filter)
	pageFlags(flags, &filter.Limit, &cursor)
	return cmd
}

type deadLettersView struct {
	*monitor.LedgerPage

	recorded bool // an engine with this configuration records them
}

func deadLettersPage(w *page, list *deadLettersView) {
	titles := "ID, AGE, WHAT, REASON, DECISION, EXECUTION, ~ACTION, ~WORKER"
	open := slices.ContainsFunc(list.List, func(e monitor.LedgerEntry) bool {
		return e.Verdict.Problem != "" || e.Verdict.Advice != "" && e.Verdict.Advice != monitor.AdviseNothing
	})
	if open { // else all are decided
		titles += ", VERDICT"
	}
	table(w, list.none(), list.List, titles, func(e *monitor.LedgerEntry) []any {
		cells := []any{
			e.ID, age(list.At.Sub(e.At)), e.What, e.Reason, e.Decision, idText(e.Execution), dash(e.ActionRef),
			monitor.WorkerName(e.WorkerID, e.WorkerName),
		}
		if open {
			cells = append(cells, cmp.Or(e.Verdict.Problem, e.Verdict.Advice))
		}
		return cells
	})
	w.more(list.Next, list.Bounded)
}

// none is the text of an empty list.
func (v *deadLettersView) none() string {
	f := v.Filter
	chooses := f.Action+f.Reason+f.Worker+f.Type != "" || f.Execution != 0 || f.MaxAge != 0 || f.MinAge != 0 ||
		len(f.Decisions) > 0
	switch {
	case v.From != 0:
		return "no more dead letters match"
	case f.Open && !chooses:
		return "no dead letter waits for a person"
	case chooses || f.Open || f.Decided:
		return "no dead letter matches; " + countText(v.Open) + " wait for a person"
	case !v.recorded:
		return "no dead letters are recorded while message_queue.rabbitmq.dead_letter.enabled is false: " +
			"`attune-executor dlq take` takes the messages in the queue"
	default:
		return "no dead letters: no message has died, or no engine has handled it yet: " +
			"`attune-executor dlq take` takes the messages in the queue"
	}
}

func deadLetterPage(w *page, d *monitor.LedgerDetail) {
	now := d.Reading.At
	ago := func(at *time.Time) string {
		if at == nil {
			return ""
		}
		return ", " + agoText(*at, now)
	}
	w.row("dead letter", d.ID)
	w.row("what", fmt.Sprintf("%s (%s), %s", d.What, d.Type, count(int(d.Size), "byte")))
	w.row("died", d.Reason+" in "+dash(d.Queue)+ago(d.Died))
	w.row("stored", agoText(d.LedgerEntry.At, now))
	to := dash(d.Exchange) + " with the key " + dash(d.RoutingKey)
	if d.Exchange == "" && d.RoutingKey != "" && d.RoutingKey == d.Queue {
		to = phrase.Destination("", d.RoutingKey)
	}
	w.row("sent to", to)
	w.row("message", dash(d.MessageID))
	w.fact("correlation", d.CorrelationID)
	if d.LedgerEntry.Execution != nil {
		w.row("execution", executionThen(d))
		w.row("now", executionNow(d.ExecutionNow))
	}
	if d.WorkerID != nil {
		w.row("worker", strings.TrimSpace(idText(d.WorkerID)+" "+d.WorkerName))
	}
	if d.Open() {
		w.row("decision", "none: it waits for a person")
	} else {
		w.row("decision", d.Decision+" by "+dash(d.DecidedBy)+ago(d.DecidedAt))
	}
	w.fact("because", d.Detail)
	requeue := "is refused"
	switch d.Verdict.Requeue {
	case monitor.RequeueRepeats:
		requeue = "repeats the execution"
	case monitor.RequeueSends:
		requeue = "sends the message again"
	}
	w.row("requeue", requeue+": "+d.Verdict.Why)
	if d.Verdict.Unknown != "" {
		w.row("unknown", "whether the broker accepts it there: "+d.Verdict.Unknown)
	}
	for _, lost := range d.NotKept {
		w.row("not kept", lost)
	}
	w.row("advice", adviceText(d))
	for _, document := range []struct {
		name string
		text json.RawMessage
	}{{"deaths", d.XDeath}, {"headers", d.Headers}, {"evidence", d.Evidence}} {
		if string(document.text) != "null" {
			w.document(document.name, document.text)
		}
	}
	title := "body"
	if d.Body.Cut {
		title += fmt.Sprintf(", its first %d bytes: no more is kept", d.Size)
	}
	if d.Body.Format == "empty" {
		w.row("\nthe body is empty")
	} else {
		w.text("\n" + title + "\n" + strings.TrimRight(bodyText(d.Body), "\n"))
	}
}

func executionThen(d *monitor.LedgerDetail) string {
	text := idText(d.LedgerEntry.Execution)
	if d.ActionRef != "" {
		text += " of " + d.ActionRef
	}
	if d.Attempt != nil {
		text += ", dispatch " + idText(d.Attempt)
	}
	if d.StatusThen != "" {
		text += ", was " + d.StatusThen
	}
	return text
}

func executionNow(x *monitor.DeadLetterExecution) string {
	if x == nil {
		return "it does not exist"
	}
	text := fmt.Sprintf("%s, dispatch %d", x.Status, x.Attempt)
	if x.Reason != "" {
		text += " (" + x.Reason + ")"
	}
	if x.RepeatedBy != 0 {
		text += fmt.Sprintf(", repeated by execution %d", x.RepeatedBy)
	}
	return text
}

func adviceText(d *monitor.LedgerDetail) string {
	switch {
	case d.Verdict.Advice == monitor.AdviseRequeue:
		return fmt.Sprintf("requeue it: `attune-executor dlq requeue %d`", d.ID)
	case d.Verdict.Advice == monitor.AdviseFix:
		return fmt.Sprintf("mend the cause, then requeue it: `attune-executor dlq requeue %d --yes`", d.ID)
	case d.Verdict.Advice == monitor.AdviseDiscard && d.Open():
		return fmt.Sprintf("discard it: `attune-executor dlq discard %d`", d.ID)
	case d.Verdict.Advice == monitor.AdviseExport:
		return "keep a copy (`attune-executor dlq export`), then discard it"
	case d.Verdict.Advice == monitor.AdviseSend:
		return "declare where it is sent to, or send it elsewhere with M in the dashboard"
	case d.Verdict.Advice == monitor.AdviseWait:
		return "wait: the engine is about to decide"
	case d.Verdict.Advice == monitor.AdviseRetry:
		return fmt.Sprintf("if it is to run again: `attune-executor execution retry %d`", d.ExecutionNow.RepeatedBy)
	}
	return "nothing to do"
}

// maxDump bounds the shown bytes of a binary body.
const maxDump = 1024

func bodyText(b monitor.DeadLetterBody) string {
	switch b.Format {
	case "json":
		return phrase.Visible(pretty(b.JSON))
	case "text":
		return phrase.Visible(b.Text)
	default:
		text := hex.Dump(b.Base64[:min(len(b.Base64), maxDump)])
		if len(b.Base64) > maxDump {
			text += fmt.Sprintf("… %d bytes more\n", b.Size-maxDump)
		}
		return text
	}
}
