package tracing

import (
	"cmp"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// eventSpan lasts from the event to its match with the rules. It is the first of its trace.
func eventSpan(root Context, e store.ReadTraceEventsRow, from Context) Span {
	span := Span{
		Context: root.At(Event, e.ID, Whole), Parent: root.Span,
		Name: "event " + e.TriggerRef, Role: Internal, Start: e.Created, End: later(e.At, e.Created),
		Attrs: []Attr{
			{Key: "attune.event.id", Value: e.ID},
			{Key: "attune.trigger", Value: e.TriggerRef},
			{Key: "attune.event.source", Value: e.SourceRef},
			{Key: "attune.event.rules", Value: int64(e.Rules)},
			{Key: "attune.event.matched", Value: int64(e.Matched)},
		},
	}
	if from.Trace != (ID{}) {
		span.Links = []Context{from.At(Execution, e.Execution, Run)}
	}
	if e.Failures > 0 {
		span.Failure = "conditions of rules could not be evaluated"
	}
	return span
}

// enforcementSpan lasts from the match with a rule to the execution.
func enforcementSpan(root Context, e store.ReadTraceEnforcementsRow) Span {
	span := Span{
		Context: root.At(Enforcement, e.ID, Whole), Parent: root.Span,
		Name: "enforcement " + e.RuleRef, Role: Internal, Start: e.Created, End: later(e.Ended, e.Created),
		Attrs: []Attr{
			{Key: "attune.enforcement.id", Value: e.ID},
			{Key: "attune.rule", Value: e.RuleRef},
			{Key: "attune.enforcement.status", Value: e.Status},
		},
		Failure: e.Error,
	}
	if e.Event != 0 {
		span.Parent = root.Trace.Span(Event, e.Event, Whole)
	}
	return span
}

// executionSpans are the span of an execution and those of its phases. done is when a batch released
// its slot and decided what follows.
func executionSpans(root Context, e store.ReadTraceExecutionsRow, done time.Time) []Span {
	whole := root.At(Execution, e.ID, Whole)
	ended := e.Created
	if e.FinishedAt != nil {
		ended = *e.FinishedAt
	}
	common := []Attr{
		{Key: "attune.execution.id", Value: e.ID},
		{Key: "attune.action", Value: e.ActionRef},
		{Key: "attune.execution.status", Value: string(e.Status)},
	}
	own := append([]Attr(nil), common...)
	if e.Task != "" {
		own = append(own, Attr{Key: "attune.workflow.task", Value: e.Task})
	}
	if e.RetryCount > 0 {
		own = append(own, Attr{Key: "attune.execution.retry", Value: int64(e.RetryCount)},
			Attr{Key: "attune.execution.retry_reason", Value: e.RetryReason})
	}
	spans := []Span{{
		Context: whole, Parent: parentOf(root, e), Name: "execution " + e.ActionRef, Role: Internal,
		Start: e.Created, End: later(done, ended), Attrs: own, Failure: failureOf(e),
	}}
	add := func(phase Phase, role Role, from, to time.Time, attrs ...Attr) {
		spans = append(spans, Span{
			Context: root.At(Execution, e.ID, phase), Parent: whole.Span, Name: string(phase) + " " + e.ActionRef,
			Role: role, Start: from, End: later(to, from), Attrs: append(attrs, common...),
		})
	}
	due := e.Created
	if e.Due != nil && e.Due.After(e.Created) && !e.Due.After(ended) {
		due = *e.Due
		add(Delay, Internal, e.Created, due)
	}
	if e.AdmittedAt == nil {
		return append(spans, completeSpan(root, e, ended, done, common)...)
	}
	at := Attr{Key: "attune.worker.id", Value: e.Worker}
	name := Attr{Key: "attune.worker", Value: e.WorkerName}
	add(Queue, Internal, due, *e.AdmittedAt)
	if e.StartedAt == nil {
		add(Dispatch, Producer, *e.AdmittedAt, ended, at, name)
	} else {
		add(Dispatch, Producer, *e.AdmittedAt, *e.StartedAt, at, name)
		add(Run, Consumer, *e.StartedAt, ended, at, name,
			Attr{Key: "attune.execution.attempt", Value: int64(e.Attempt)})
		spans[len(spans)-1].Failure = failureOf(e)
	}
	return append(spans, completeSpan(root, e, ended, done, common)...)
}

// completeSpan lasts from the end of an execution to the commit that drew its consequences.
func completeSpan(root Context, e store.ReadTraceExecutionsRow, ended, done time.Time, attrs []Attr,
) []Span {
	if e.FinishedAt == nil {
		return nil
	}
	return []Span{{
		Context: root.At(Execution, e.ID, Complete), Name: string(Complete) + " " + e.ActionRef,
		Parent: root.Trace.Span(Execution, e.ID, Whole), Role: Internal, Start: ended,
		End: later(done, ended), Attrs: attrs,
	}}
}

// parentOf is the span above an execution: that of the execution that it repeats, of its workflow, or
// of its enforcement; without any the client's.
func parentOf(root Context, e store.ReadTraceExecutionsRow) SpanID {
	switch above := cmp.Or(e.Original, e.Parent); {
	case above != 0:
		return root.Trace.Span(Execution, above, Whole)
	case e.Enforcement != 0:
		return root.Trace.Span(Enforcement, e.Enforcement, Whole)
	}
	return root.Span
}

func failureOf(e store.ReadTraceExecutionsRow) string {
	if e.Status == lifecycle.StatusCompleted {
		return ""
	}
	return cmp.Or(e.Error, string(e.Status))
}

// later keeps a span from ending before it begins: its times are of several transactions.
func later(end, start time.Time) time.Time {
	if end.Before(start) {
		return start
	}
	return end
}
