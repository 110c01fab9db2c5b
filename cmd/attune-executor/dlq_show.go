package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/terminal"
)

func letterPage(w *page, d *monitor.LedgerDetail) {
	now := d.Reading.At
	lines := [][2]string{
		{"dead letter", strconv.FormatInt(d.ID, 10)},
		{"what", fmt.Sprintf("%s (%s), %s", d.What, d.Type, count(int(d.Size), "byte"))},
		{"died", diedText(d, now)},
		{"stored", agoText(d.LedgerEntry.At, now)},
		{"sent to", dash(d.Exchange) + " with the key " + dash(d.RoutingKey)},
		{"message", dash(d.MessageID)},
	}
	add := func(name, value string) { lines = append(lines, [2]string{name, value}) }
	add("correlation", d.CorrelationID)
	if d.LedgerEntry.Execution != nil {
		add("execution", executionThen(d))
		add("now", executionNow(d.ExecutionNow))
	}
	if d.WorkerID != nil {
		add("worker", strings.TrimSpace(idText(d.WorkerID)+" "+d.WorkerName))
	}
	if d.Open() {
		add("decision", "none: it waits for a person")
	} else {
		decided := d.Decision + " by " + dash(d.DecidedBy)
		if d.DecidedAt != nil {
			decided += ", " + agoText(*d.DecidedAt, now)
		}
		add("decision", decided)
	}
	add("because", d.Detail)
	add("requeue", requeueText(d.Verdict)+": "+d.Verdict.Why)
	add("advice", adviceText(d))
	w.facts(lines)
	letterDocuments(w, d)
}

func diedText(d *monitor.LedgerDetail, now time.Time) string {
	text := d.Reason + " in " + dash(d.Queue)
	if d.Died != nil {
		text += ", " + agoText(*d.Died, now)
	}
	return text
}

func executionThen(d *monitor.LedgerDetail) string {
	text := idText(d.LedgerEntry.Execution)
	if d.ActionRef != "" {
		text += " of " + d.ActionRef
	}
	if d.Attempt != nil {
		text += ", hand-over " + idText(d.Attempt)
	}
	if d.StatusThen != "" {
		text += ", was " + d.StatusThen
	}
	return text
}

func executionNow(x *monitor.LetterExecution) string {
	if x == nil {
		return "it does not exist"
	}
	text := fmt.Sprintf("%s, hand-over %d", x.Status, x.Attempt)
	if x.Reason != "" {
		text += " (" + x.Reason + ")"
	}
	if x.RepeatedBy != 0 {
		text += fmt.Sprintf(", repeated by execution %d", x.RepeatedBy)
	}
	return text
}

func requeueText(v monitor.LetterVerdict) string {
	switch v.Requeue {
	case monitor.RequeueRepeats:
		return "repeats the execution"
	case monitor.RequeueSends:
		return "sends the message again"
	default:
		return "is refused"
	}
}

func adviceText(d *monitor.LedgerDetail) string {
	id := d.ID
	switch d.Verdict.Advice {
	case monitor.AdviseRequeue:
		return fmt.Sprintf("requeue it: `attune-executor dlq requeue %d`", id)
	case monitor.AdviseDiscard:
		if !d.Open() {
			return "nothing to do"
		}
		return fmt.Sprintf("discard it: `attune-executor dlq discard %d`", id)
	case monitor.AdviseExport:
		return "keep a copy (`attune-executor dlq export`), then discard it"
	case monitor.AdviseWait:
		return "wait: the engine is about to decide"
	case monitor.AdviseRetry:
		return fmt.Sprintf("if it is to run again: `attune-executor execution retry %d`", d.ExecutionNow.RepeatedBy)
	default:
		return "nothing to do"
	}
}

func letterDocuments(w *page, d *monitor.LedgerDetail) {
	for _, document := range []struct {
		name string
		text json.RawMessage
	}{{"deaths", d.XDeath}, {"headers", d.Headers}, {"evidence", d.Evidence}} {
		if string(document.text) != "null" {
			w.document(document.name, document.text)
		}
	}
	if d.Body.Format == "empty" {
		w.row("\nthe body is empty")
		return
	}
	title := "body"
	if d.Body.Cut {
		title += fmt.Sprintf(", its beginning (%d bytes in all: `attune-executor dlq export` has them)", d.Size)
	}
	w.text("\n" + title + "\n" + strings.TrimRight(bodyText(d.Body), "\n"))
}

// maxDump is how many bytes of a binary body are shown.
const maxDump = 1024

func bodyText(b monitor.LetterBody) string {
	switch b.Format {
	case "json":
		return terminal.Visible(pretty(b.JSON))
	case "text":
		return terminal.Visible(b.Text)
	default:
		text := hex.Dump(b.Base64[:min(len(b.Base64), maxDump)])
		if len(b.Base64) > maxDump {
			text += fmt.Sprintf("… %d bytes more\n", b.Size-maxDump)
		}
		return text
	}
}
