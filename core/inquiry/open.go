package inquiry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// Statement is one statement for the transaction of a question. It locks inquiries, so it must follow the statements
// that write the executions.
type Statement struct {
	SQL  string
	Args []any
}

// Opening has the questions that a transaction opens, and the faults that it records. The zero Opening has none.
type Opening struct {
	Questions []Question
	Faults    []Fault

	begins bool // the statements also set the executions running
}

// Fault is a question that cannot be asked.
type Fault struct {
	Execution int64
	Reason    string
}

// Read prepares the questions in the results of the completed executions that have no inquiry yet. It reads without
// locks: if an inquiry comes meanwhile, the statements abort their transaction and the caller reads again.
func Read(ctx context.Context, q *store.Queries, executions []int64) (*Opening, error) {
	o := &Opening{}
	if len(executions) == 0 {
		return o, nil
	}
	rows, err := q.FindAsking(ctx, executions)
	if err != nil {
		return nil, fmt.Errorf("find the questions of %d executions: %w", len(executions), err)
	}
	for _, row := range rows {
		question, err := parse(row.Question)
		if err != nil {
			o.Faults = append(o.Faults, Fault{Execution: row.ID, Reason: err.Error()})
			continue
		}
		question.Execution = row.ID
		o.Questions = append(o.Questions, question)
	}
	return o, o.prepare(ctx, q)
}

// Prepare prepares the questions of core.ask executions that the same transaction creates. It assigns ascending ids; a
// question for an unknown identity becomes a fault.
func Prepare(ctx context.Context, q *store.Queries, questions []Question) (*Opening, error) {
	o := &Opening{Questions: questions}
	return o, o.prepare(ctx, q)
}

func (o *Opening) prepare(ctx context.Context, q *store.Queries) error {
	if err := o.checkAssignees(ctx, q); err != nil {
		return err
	}
	if len(o.Questions) == 0 {
		return nil
	}
	ids, err := q.NewIDs(ctx, "inquiry", int32(len(o.Questions)))
	if err != nil {
		return fmt.Errorf("allocate ids for %d inquiries: %w", len(o.Questions), err)
	}
	for i := range o.Questions {
		o.Questions[i].ID = ids[i]
	}
	return nil
}

// checkAssignees turns questions for unknown identities into faults.
func (o *Opening) checkAssignees(ctx context.Context, q *store.Queries) error {
	var wanted []int64
	for _, question := range o.Questions {
		if question.AssignedTo != nil {
			wanted = append(wanted, *question.AssignedTo)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	known, err := q.KnownIdentities(ctx, wanted)
	if err != nil {
		return fmt.Errorf("find %d identities: %w", len(wanted), err)
	}
	kept := make([]Question, 0, len(o.Questions))
	for _, question := range o.Questions {
		if to := question.AssignedTo; to != nil && !slices.Contains(known, *to) {
			o.Faults = append(o.Faults, Fault{
				Execution: question.Execution,
				Reason:    fmt.Sprintf("%v: there is no identity %d to assign it to", ErrMalformed, *to),
			})
			continue
		}
		kept = append(kept, question)
	}
	o.Questions = kept
	return nil
}

// Empty reports whether there is nothing to write.
func (o *Opening) Empty() bool { return o == nil || len(o.Questions)+len(o.Faults) == 0 }

// Statements are for the transaction of the questions: through Batch.Also of completions, or queued in a pipeline.
func (o *Opening) Statements() []Statement {
	var all []Statement
	if n := len(o.Questions); o.begins && n > 0 {
		executions, results := make([]int64, n), make([]string, n)
		for i, q := range o.Questions {
			executions[i], results[i] = q.Execution, string(q.Waiting())
		}
		all = append(all, Statement{SQL: store.BeginQuestions, Args: []any{executions, results}})
	}
	if len(o.Questions) > 0 {
		all = append(all, Statement{SQL: store.OpenInquiries, Args: []any{encode(o.Questions)}})
	}
	if n := len(o.Faults); n > 0 {
		executions, reasons := make([]int64, n), make([]string, n)
		for i, fault := range o.Faults {
			executions[i], reasons[i] = fault.Execution, fault.Reason
		}
		all = append(all, Statement{SQL: store.RecordInquiryFaults, Args: []any{executions, reasons}})
	}
	return all
}

// Messages returns an InquiryCreated for each question. now is the time of the transaction by the database's clock,
// source the source_service.
func (o *Opening) Messages(now time.Time, source string) ([]outbox.Message, error) {
	messages := make([]outbox.Message, 0, len(o.Questions))
	for _, q := range o.Questions {
		payload := message.InquiryCreated{
			InquiryID: q.ID, ExecutionID: q.Execution, Prompt: q.Prompt, ResponseSchema: q.Schema,
			AssignedTo: q.AssignedTo,
		}
		if q.Timeout > 0 {
			at := now.Add(q.Timeout).UTC()
			payload.TimeoutAt = &at
		}
		m, err := outbox.Encode(message.TypeInquiryCreated, payload, now, source)
		if err != nil {
			return nil, fmt.Errorf("compose the message of inquiry %d: %w", q.ID, err)
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// row is a question in the JSON of the statement OpenInquiries.
type row struct {
	ID         int64           `json:"id"`
	Execution  int64           `json:"execution"`
	Prompt     string          `json:"prompt"`
	Schema     json.RawMessage `json:"schema,omitempty"`
	AssignedTo *int64          `json:"assigned_to,omitempty"`
	Seconds    *float64        `json:"seconds,omitempty"`
}

func encode(questions []Question) []byte {
	rows := make([]row, len(questions))
	for i, q := range questions {
		rows[i] = row{ID: q.ID, Execution: q.Execution, Prompt: q.Prompt, Schema: q.Schema, AssignedTo: q.AssignedTo}
		if q.Timeout > 0 {
			seconds := q.Timeout.Seconds()
			rows[i].Seconds = &seconds
		}
	}
	raw, err := json.Marshal(rows)
	if err != nil {
		return []byte(`[]`) // cannot happen: numbers, texts and JSON that was read
	}
	return raw
}
