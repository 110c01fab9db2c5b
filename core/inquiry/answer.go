package inquiry

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// ErrNotFound means that the inquiry does not exist.
var ErrNotFound = errors.New("there is no such inquiry")

// MaxResponse is the largest response, in bytes.
const MaxResponse = 1 << 20

// Reason classifies a refused answer.
type Reason string

// The reasons.
const (
	AlreadyAnswered Reason = "answered"
	TimeOver        Reason = "expired"
	WasCancelled    Reason = "cancelled"
	ExecutionEnded  Reason = "execution_ended" // or is being cancelled
	NotAssigned     Reason = "assignee"        // the inquiry is assigned to another identity
	NoIdentity      Reason = "identity"        // the identity does not exist or is frozen
	DoesNotFit      Reason = "invalid"         // the response contradicts the schema
	NotSealed       Reason = "secret"          // secrets of the response cannot be sealed
)

// RefusedError explains a refused answer. Nothing was changed.
type RefusedError struct {
	Inquiry int64
	Reason  Reason
	Text    string
	// Mistakes are all mistakes of a response that does not fit.
	Mistakes []string
}

// Error has the text and all mistakes.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("inquiry %d: %s", e.Inquiry, e.Text)
	if len(e.Mistakes) > 0 {
		text += ": " + strings.Join(e.Mistakes, "; ")
	}
	return text
}

// Answer is a response to an inquiry.
type Answer struct {
	Inquiry  int64
	Response json.RawMessage
	// As is the login of the answering identity; it may be empty if the inquiry is not assigned.
	As string
	// By names the operator, for the record.
	By string
	// Source is the source_service of messages.
	Source string
	// Keys seal the secrets that the schema marks. Without a key such an answer is refused.
	Keys secret.Keyring
}

// Answered is an accepted answer.
type Answered struct {
	Inquiry   int64
	Execution int64
	ActionRef string
	Prompt    string
	// Response is the stored response, with markers in place of secrets.
	Response json.RawMessage
	At       time.Time
	Identity int64 // 0 for none
	// Completed says that the execution, a core.ask, has ended with the answer.
	Completed bool
	// Messages are for the outbox, in the same transaction.
	Messages []outbox.Message
}

// Respond stores an answer in the caller's transaction: at most one for each inquiry, in time by the database's clock,
// of the assigned identity, and valid by the schema. It ends the execution of a core.ask; any other execution keeps its
// status. A refused answer is a RefusedError or ErrNotFound.
//
// It locks the workflows above the execution, the execution and the inquiry, so none of them ends meanwhile. The caller
// must lock other workflows and queues before.
func Respond(ctx context.Context, tx *store.Tx, a Answer) (*Answered, error) {
	stopped, err := lockAnswered(ctx, tx, a.Inquiry)
	if err != nil {
		return nil, err
	}
	facts, err := tx.InquiryFacts(ctx, Action, a.Inquiry)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read inquiry %d: %w", a.Inquiry, err)
	}
	identity, err := identify(ctx, tx, a)
	if err != nil {
		return nil, err
	}
	given, err := evaluate(&facts, stopped, a, identity)
	if err != nil {
		return nil, err
	}
	if err := write(ctx, tx, &facts, a, given, identity); err != nil {
		return nil, err
	}
	done := &Answered{
		Inquiry: a.Inquiry, Execution: facts.Execution, ActionRef: facts.ActionRef, Prompt: facts.Prompt,
		Response: given.public, At: facts.Now.UTC(), Identity: identity, Completed: facts.OnlyAsks,
	}
	settled, err := settle(ctx, tx, []int64{a.Inquiry}, a.Source, secret.Keyring{}) // the answer is sealed already
	if err != nil {
		return nil, err
	}
	payload := message.InquiryResponded{
		InquiryID: a.Inquiry, ExecutionID: facts.Execution, Response: given.public, RespondedAt: done.At,
	}
	if identity != 0 {
		payload.RespondedBy = &identity
	}
	responded, err := outbox.Encode(message.TypeInquiryResponded, payload, done.At, a.Source)
	if err != nil {
		return nil, fmt.Errorf("compose the answer to inquiry %d: %w", a.Inquiry, err)
	}
	done.Messages = slices.Concat(settled.messages, []outbox.Message{responded})
	return done, nil
}

// identify finds the answering identity, 0 for none.
func identify(ctx context.Context, tx *store.Tx, a Answer) (int64, error) {
	if a.As == "" {
		return 0, nil
	}
	row, err := tx.FindIdentity(ctx, a.As)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, refuse(a.Inquiry, NoIdentity, fmt.Sprintf("there is no identity with the login %q", a.As))
	}
	if err != nil {
		return 0, fmt.Errorf("find the identity %q: %w", a.As, err)
	}
	if row.Frozen {
		return 0, refuse(a.Inquiry, NoIdentity, fmt.Sprintf("the identity %q is frozen", a.As))
	}
	return row.ID, nil
}

func write(ctx context.Context, tx *store.Tx, f *store.InquiryFactsRow, a Answer, given *response,
	identity int64,
) error {
	n, err := tx.RespondInquiry(ctx, store.RespondInquiryParams{
		ID: f.ID, Response: given.public, RespondedBy: identity, Responder: cmp.Or(a.As, a.By),
	})
	if err != nil {
		return fmt.Errorf("answer inquiry %d: %w", f.ID, err)
	}
	if n == 0 { // its time ended between the two statements
		return refuse(f.ID, TimeOver, "its time is over")
	}
	if len(given.sealed) == 0 {
		return nil
	}
	var rows store.InsertSecretValuesParams
	for _, one := range given.sealed {
		store.AddSecret(&rows, secret.OfResult, f.Execution, one)
	}
	if err := tx.InsertSecretValues(ctx, rows); err != nil {
		return fmt.Errorf("store %d secrets of the answer to inquiry %d: %w", len(given.sealed), f.ID, err)
	}
	return nil
}

// evaluate reads, checks and seals an answer.
func evaluate(f *store.InquiryFactsRow, stopped string, a Answer, identity int64) (*response, error) {
	if err := admissible(f, stopped, identity); err != nil {
		return nil, err
	}
	given, mistakes := mistakes(f.ResponseSchema, a.Response)
	if len(mistakes) > 0 {
		return nil, &RefusedError{
			Inquiry: f.ID, Reason: DoesNotFit, Text: "the answer does not fit",
			Mistakes: mistakes,
		}
	}
	if err := given.seal(f.ResponseSchema, a.Keys); err != nil {
		return nil, refuse(f.ID, NotSealed, "the answer has secrets that cannot be encrypted: "+err.Error())
	}
	return given, nil
}

// admissible refuses an answer that this identity may not give, or not any more. stopped is that of lockAnswered.
func admissible(f *store.InquiryFactsRow, stopped string, identity int64) error {
	switch status := Status(f.Status); {
	case status == Responded:
		text := "it was answered already"
		if f.Responder != "" {
			text += " by " + f.Responder
		}
		if f.RespondedAt != nil {
			text += " at " + f.RespondedAt.UTC().Format(time.RFC3339)
		}
		return refuse(f.ID, AlreadyAnswered, text)
	case status == Expired || status == Pending && f.Late:
		text := "its time is over"
		if f.TimeoutAt != nil {
			text += " since " + f.TimeoutAt.UTC().Format(time.RFC3339)
		}
		return refuse(f.ID, TimeOver, text)
	case status != Pending:
		return refuse(f.ID, WasCancelled, "it was cancelled")
	}
	waits := f.OnlyAsks || f.ExecutionStatus == lifecycle.StatusCompleted // it asks, or asked in its result
	if f.Asked && !waits {
		return refuse(f.ID, ExecutionEnded,
			fmt.Sprintf("nothing waits for the answer: execution %d is %s", f.Execution, f.ExecutionStatus))
	}
	if (f.Asked || f.OnlyAsks) && stopped != "" {
		return refuse(f.ID, ExecutionEnded, "nothing waits for the answer: "+stopped)
	}
	if f.AssignedTo != nil && *f.AssignedTo != identity {
		text := fmt.Sprintf("it is assigned to %s (identity %d), and only they may answer",
			cmp.Or(f.Assignee, "another identity"), *f.AssignedTo)
		return refuse(f.ID, NotAssigned, text)
	}
	return nil
}

func refuse(inquiry int64, reason Reason, text string) *RefusedError {
	return &RefusedError{Inquiry: inquiry, Reason: reason, Text: text}
}
