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

	"github.com/attune-go/attune/core/attune"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// ErrNotFound says that there is no inquiry with the number.
var ErrNotFound = errors.New("there is no such inquiry")

// MaxResponse is the largest response that is taken, in bytes.
const MaxResponse = 1 << 20

// Reason is why an answer is refused.
type Reason string

// The reasons.
const (
	AlreadyAnswered Reason = "answered"
	TimeOver        Reason = "expired"
	WasCancelled    Reason = "cancelled"
	ExecutionEnded  Reason = "execution_ended" // or is being stopped
	NotAssigned     Reason = "assignee"        // it is for somebody else
	NoIdentity      Reason = "identity"        // in whose name it was given
	DoesNotFit      Reason = "invalid"         // the response is not what is asked for
	NotSealed       Reason = "secret"          // it holds secrets that cannot be kept
)

// RefusedError says why an answer was not taken. Nothing was changed.
type RefusedError struct {
	Inquiry int64
	Reason  Reason
	Text    string
	// Mistakes are all that is wrong with a response that does not fit.
	Mistakes []string
}

// Error says it in a sentence.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("inquiry %d: %s", e.Inquiry, e.Text)
	if len(e.Mistakes) > 0 {
		text += ": " + strings.Join(e.Mistakes, "; ")
	}
	return text
}

// Answer is a response to be given.
type Answer struct {
	Inquiry  int64
	Response json.RawMessage
	// As is the login of the identity in whose name it is given; it may be empty
	// where the question is for anybody.
	As string
	// By is who gives it, for people who ask later.
	By string
	// Source is the program that writes the messages.
	Source string
	// Keys seal what the schema of the question marks as secret. Without a key such an
	// answer is refused.
	Keys secret.Keyring
}

// Answered is an answer that was taken.
type Answered struct {
	Inquiry   int64
	Execution int64
	ActionRef string
	Prompt    string
	// Response is what was stored, with markers in place of secrets.
	Response json.RawMessage
	At       time.Time
	Identity int64 // in whose name; 0 for nobody's
	// Completed says that the execution, which only asked, has ended with it.
	Completed bool
	// Messages are for the outbox, in the same transaction.
	Messages []outbox.Message
}

// Respond takes an answer in the caller's transaction: at most one, in time by the
// database's clock, from whom it is assigned to, and as the question asks for it. The
// execution that only asked ends with it, and the workflow is told in any case; one
// about which others have asked through the API stays as it is, ended or not. What
// is refused is a RefusedError or ErrNotFound. It locks the execution, the workflows
// above it and the inquiry, so that it comes after whatever of workflows and queues the
// transaction locks, and so that none of them ends or is cancelled meanwhile.
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
	given, err := judge(&facts, stopped, a, identity)
	if err != nil {
		return nil, err
	}
	if err := write(ctx, tx, &facts, a, given, identity); err != nil {
		return nil, err
	}
	done := &Answered{
		Inquiry: a.Inquiry, Execution: facts.Execution, ActionRef: facts.ActionRef, Prompt: facts.Prompt,
		Response: given.public,
		At:       facts.Now.UTC(), Identity: identity, Completed: facts.OnlyAsks,
	}
	settled, err := settle(ctx, tx, []int64{a.Inquiry}, a.Source, secret.Keyring{}) // it is sealed
	if err != nil {
		return nil, err
	}
	told, err := compose(message.TypeInquiryResponded, message.InquiryResponded{
		InquiryID: a.Inquiry, ExecutionID: facts.Execution, Response: given.public, RespondedBy: positive(identity),
		RespondedAt: done.At,
	}, done.At, a.Source)
	if err != nil {
		return nil, fmt.Errorf("tell of the answer to inquiry %d: %w", a.Inquiry, err)
	}
	done.Messages = slices.Concat(settled.messages, []outbox.Message{told})
	return done, nil
}

// identify finds the identity in whose name an answer is given.
func identify(ctx context.Context, tx *store.Tx, a Answer) (int64, error) {
	if a.As == "" {
		return 0, nil
	}
	row, err := tx.FindIdentity(ctx, a.As)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, refuse(a.Inquiry, NoIdentity, fmt.Sprintf("there is no identity with the login %q", a.As))
	}
	if err != nil {
		return 0, fmt.Errorf("look for the identity %q: %w", a.As, err)
	}
	if row.Frozen {
		return 0, refuse(a.Inquiry, NoIdentity, fmt.Sprintf("the identity %q is frozen", a.As))
	}
	return row.ID, nil
}

// write stores an answer that was judged to be right.
func write(ctx context.Context, tx *store.Tx, f *store.InquiryFactsRow, a Answer, given *response,
	identity int64) error {
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

// judge reads an answer, and says why it is refused.
func judge(f *store.InquiryFactsRow, stopped string, a Answer, identity int64) (*response, error) {
	if err := admissible(f, stopped, identity); err != nil {
		return nil, err
	}
	given, mistakes := mistakes(f.ResponseSchema, a.Response)
	if len(mistakes) > 0 {
		return nil, &RefusedError{Inquiry: f.ID, Reason: DoesNotFit, Text: "the answer does not fit",
			Mistakes: mistakes}
	}
	if err := given.seal(f.ResponseSchema, a.Keys); err != nil {
		return nil, refuse(f.ID, NotSealed, "the answer holds secrets, and these cannot be kept: "+err.Error())
	}
	return given, nil
}

// admissible says why no answer of this identity is taken, or nil. stopped is what of
// those who wait for it has ended or shall stop.
func admissible(f *store.InquiryFactsRow, stopped string, identity int64) error {
	switch status := Status(f.Status); {
	case status == Responded:
		return refuse(f.ID, AlreadyAnswered, answeredText(f))
	case status == Expired || status == Pending && f.Late:
		text := "its time is over"
		if f.TimeoutAt != nil {
			text += " since " + f.TimeoutAt.UTC().Format(time.RFC3339)
		}
		return refuse(f.ID, TimeOver, text)
	case status != Pending:
		return refuse(f.ID, WasCancelled, "it was cancelled")
	}
	waits := f.OnlyAsks || f.ExecutionStatus == attune.StatusCompleted // it asks, or asked in its result
	if f.Asked && !waits {
		return refuse(f.ID, ExecutionEnded,
			fmt.Sprintf("nothing waits for the answer: execution %d is %s", f.Execution, f.ExecutionStatus))
	}
	if (f.Asked || f.OnlyAsks) && stopped != "" {
		return refuse(f.ID, ExecutionEnded, "nothing waits for the answer: "+stopped)
	}
	if f.AssignedTo != nil && *f.AssignedTo != identity {
		text := fmt.Sprintf("it is assigned to %s (identity %d), and only they may answer",
			cmp.Or(f.Assignee, "somebody else"), *f.AssignedTo)
		return refuse(f.ID, NotAssigned, text)
	}
	return nil
}

func answeredText(f *store.InquiryFactsRow) string {
	text := "it was answered already"
	if f.Responder != "" {
		text += " by " + f.Responder
	}
	if f.RespondedAt != nil {
		text += " at " + f.RespondedAt.UTC().Format(time.RFC3339)
	}
	return text
}

func refuse(inquiry int64, reason Reason, text string) *RefusedError {
	return &RefusedError{Inquiry: inquiry, Reason: reason, Text: text}
}

func positive(id int64) *int64 {
	if id == 0 {
		return nil
	}
	return &id
}
