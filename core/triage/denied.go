package triage

import (
	"fmt"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/store"
)

// DeniedError reports that a login lacks a privilege for an action. The action has changed nothing.
type DeniedError struct {
	text string
	err  error
}

// Error says which login lacks what, and which role has it.
func (e *DeniedError) Error() string { return e.text }

// Unwrap returns the server's error.
func (e *DeniedError) Unwrap() error { return e.err }

// Denied explains the refusal of a database or a broker with a *DeniedError; it returns other errors as they are.
func (t *Triage) Denied(err error) error {
	const role = ": acting needs the role operator, see `attune-executor doctor --as operator`"
	if message, denied := store.Denied(err); denied {
		text := fmt.Sprintf("the database login %s may not do that (%s)%s", t.store.Login(), message, role)
		return &DeniedError{text: text, err: err}
	}
	if broker.Denied(err) {
		return &DeniedError{text: "the broker user of this program may not do that" + role, err: err}
	}
	return err
}
