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

// AnswerRefusedError says why an answer was not taken: by its Reason what kind of
// refusal it is, and in Mistakes all that is wrong with a response that does not fit.
type AnswerRefusedError = inquiry.RefusedError

// Why answers are refused.
const (
	AnswerGiven    = inquiry.AlreadyAnswered
	AnswerNotYours = inquiry.NotAssigned
	AnswerUnknown  = inquiry.NoIdentity
	AnswerUnfit    = inquiry.DoesNotFit
)

// ErrNoInquiry says that there is no inquiry with the id.
var ErrNoInquiry = inquiry.ErrNotFound

// AnswerOrder is an answer to be given.
type AnswerOrder struct {
	Inquiry int64 `json:"inquiry"`
	// Response is any JSON. It is nowhere shown as it was given, since it may be secret.
	Response json.RawMessage `json:"-"`
	// As is the login of the identity in whose name it is given; one that is assigned
	// needs that of its assignee.
	As string `json:"as,omitempty"`
	// Note is why, for those who look at what was done.
	Note string `json:"note,omitempty"`
}

// AnswerPlan is what an answer would do.
type AnswerPlan struct {
	AnswerOrder

	Execution int64  `json:"execution"`
	ActionRef string `json:"action_ref"`
	Prompt    string `json:"prompt"`
	// Public is the response with markers in place of what is secret.
	Public json.RawMessage `json:"response"`
	// Completes says that the execution, which only asks, ends with it. Otherwise it
	// has completed, and the workflow goes on.
	Completes bool `json:"completes_execution"`
}

// AnswerReceipt is what an answer did.
type AnswerReceipt struct {
	AnswerPlan
	Sent

	At    time.Time `json:"responded_at"`
	Audit int64     `json:"audit_id,omitempty"`
}

// WithKeyring returns the same desk with keys, for answers that hold secrets.
func (t *Triage) WithKeyring(keys secret.Keyring) *Triage {
	other := *t
	other.keys = keys
	return &other
}

// errOnlyAPlan takes back what was only to be tried.
var errOnlyAPlan = errors.New("it is only a plan")

// PlanAnswer tries an answer and takes it back: what it returns, or refuses, is what
// Answer would do now. Errors besides those of the database: ErrNoInquiry and
// *AnswerRefusedError.
func (t *Triage) PlanAnswer(ctx context.Context, order AnswerOrder) (*AnswerPlan, error) {
	var plan *AnswerPlan
	var refused error
	err := t.store.Tx(ctx, "plan an answer", func(ctx context.Context, tx *store.Tx) error {
		done, err := inquiry.Respond(ctx, tx, t.answer(order))
		if refused = err; err != nil {
			return err
		}
		plan = planOf(order, done)
		return errOnlyAPlan
	})
	if errors.Is(err, errOnlyAPlan) {
		return plan, nil
	}
	return nil, answerProblem(refused, err)
}

// Answer answers an inquiry, at most once and in time, whoever else does or whatever
// ends it meanwhile. The answer, what follows from it, the messages and the audit are
// of one commit. Errors besides those of the database: ErrNoInquiry and
// *AnswerRefusedError.
func (t *Triage) Answer(ctx context.Context, order AnswerOrder) (*AnswerReceipt, error) {
	var receipt *AnswerReceipt
	var refused error
	err := t.store.Tx(ctx, fmt.Sprintf("answer inquiry %d", order.Inquiry), func(ctx context.Context, tx *store.Tx) error {
		done, err := inquiry.Respond(ctx, tx, t.answer(order))
		if refused = err; err != nil {
			return err
		}
		receipt = &AnswerReceipt{AnswerPlan: *planOf(order, done), At: done.At}
		of := subject{kind: "inquiry", id: order.Inquiry, name: fmt.Sprintf("inquiry %d", order.Inquiry)}
		a := audit{action: "inquiry.respond", of: of, reason: order.Note, request: receipt, outcome: outcomeDone}
		if err := t.record(ctx, tx.Queries, &receipt.Audit, a); err != nil {
			return err
		}
		return t.send(ctx, tx, done.Messages, &receipt.Sent)
	})
	if err != nil {
		return nil, answerProblem(refused, err)
	}
	return receipt, nil
}

func (t *Triage) answer(order AnswerOrder) inquiry.Answer {
	return inquiry.Answer{
		Inquiry: order.Inquiry, Response: order.Response, As: order.As, By: t.cfg.Actor, Source: t.cfg.Source,
		Keys: t.keys,
	}
}

func planOf(order AnswerOrder, done *inquiry.Answered) *AnswerPlan {
	return &AnswerPlan{
		AnswerOrder: order, Execution: done.Execution, ActionRef: done.ActionRef, Prompt: done.Prompt,
		Public: done.Response, Completes: done.Completed,
	}
}

// answerProblem returns what refused an answer, if err is that: what was being done
// when it was found says nothing more.
func answerProblem(inner, err error) error {
	if errors.Is(inner, ErrNoInquiry) {
		return inner
	}
	if refused, ok := errors.AsType[*AnswerRefusedError](inner); ok {
		return refused
	}
	return err
}
