package triage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// AnswerRefusedError is the reason why an answer is refused: the kind of refusal, and all mistakes of
// a response that does not fit.
type AnswerRefusedError = inquiry.RefusedError

// Why answers are refused.
const (
	AnswerGiven    = inquiry.AlreadyAnswered
	AnswerNotYours = inquiry.NotAssigned
	AnswerUnknown  = inquiry.NoIdentity
	AnswerUnfit    = inquiry.DoesNotFit
)

// ErrNoInquiry reports that there is no inquiry with the id.
var ErrNoInquiry = inquiry.ErrNotFound

// AnswerRequest is an answer to an inquiry.
type AnswerRequest struct {
	Inquiry int64 `json:"inquiry"`
	// Response is any JSON. It may hold secrets, so only Public is shown.
	Response json.RawMessage `json:"-"`
	// As is the login of the answering identity; an assigned inquiry needs that of its assignee.
	As string `json:"as,omitempty"`
	// Note is the reason in the audit.
	Note string `json:"note,omitempty"`
}

// AnswerPlan is what an answer would do.
type AnswerPlan struct {
	AnswerRequest

	Execution int64  `json:"execution"`
	ActionRef string `json:"action_ref"`
	Prompt    string `json:"prompt"`
	// Public is the response with markers in place of secrets.
	Public json.RawMessage `json:"response"`
	// Completes reports that the answer completes the execution. Otherwise the execution has completed
	// before, and its workflow goes on.
	Completes bool `json:"completes_execution"`
}

// AnswerReceipt is the result of an answer.
type AnswerReceipt struct {
	AnswerPlan
	Sent

	At    time.Time `json:"responded_at"`
	Audit int64     `json:"audit_id,omitempty"`
}

// WithKeyring returns the same Triage with keys, for answers with secrets.
func (t *Triage) WithKeyring(keys secret.Keyring) *Triage {
	other := *t
	other.keys = keys
	return &other
}

// errOnlyAPlan rolls the transaction of a plan back.
var errOnlyAPlan = errors.New("it is only a plan")

// PlanAnswer tries an answer and rolls it back: it returns or refuses what Answer would now. Errors
// other than those of the database: ErrNoInquiry and *AnswerRefusedError.
func (t *Triage) PlanAnswer(ctx context.Context, request AnswerRequest) (*AnswerPlan, error) {
	var plan *AnswerPlan
	err := t.act(ctx, "plan an answer", func(ctx context.Context, tx *store.Tx) error {
		done, err := inquiry.Respond(ctx, tx, t.answer(request))
		if err != nil {
			return err
		}
		plan = planOf(request, done)
		return errOnlyAPlan
	})
	if errors.Is(err, errOnlyAPlan) {
		return plan, nil
	}
	return nil, err
}

// Answer answers an inquiry, at most once and in time. One commit writes the answer, its
// consequences, the messages and the audit. Errors other than those of the database: ErrNoInquiry
// and *AnswerRefusedError.
func (t *Triage) Answer(ctx context.Context, request AnswerRequest) (*AnswerReceipt, error) {
	name := fmt.Sprintf("answer inquiry %d", request.Inquiry)
	return commit(ctx, t, name, func(ctx context.Context, tx *store.Tx) (*AnswerReceipt, error) {
		done, err := inquiry.Respond(ctx, tx, t.answer(request))
		if err != nil {
			return nil, err
		}
		receipt := &AnswerReceipt{AnswerPlan: *planOf(request, done), At: done.At}
		of := subject{kind: "inquiry", id: request.Inquiry, name: fmt.Sprintf("inquiry %d", request.Inquiry)}
		a := audit{action: "inquiry.respond", of: of, reason: request.Note, request: receipt, outcome: outcomeDone}
		if err := t.record(ctx, tx.Queries, &receipt.Audit, a); err != nil {
			return nil, err
		}
		return receipt, t.send(ctx, tx, done.Messages, &receipt.Sent)
	})
}

func (t *Triage) answer(request AnswerRequest) inquiry.Answer {
	return inquiry.Answer{
		Inquiry: request.Inquiry, Response: request.Response, As: request.As, By: t.cfg.Actor, Source: t.cfg.Source,
		Keys: t.keys,
	}
}

func planOf(request AnswerRequest, done *inquiry.Answered) *AnswerPlan {
	return &AnswerPlan{
		AnswerRequest: request, Execution: done.Execution, ActionRef: done.ActionRef, Prompt: done.Prompt,
		Public: done.Response, Completes: done.Completed,
	}
}
