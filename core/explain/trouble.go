package explain

import (
	"errors"
	"syscall"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
)

// Trouble says what an error of a source of monitor means: of the database, or of the broker and its management API.
func Trouble(source string, err error) phrase.Trouble {
	if _, asked := errors.AsType[*broker.ManagementError](err); asked {
		return broker.Trouble(err)
	}
	if source == monitor.SourceBroker && phrase.Network(err) != "" {
		return broker.Trouble(&broker.ManagementError{Err: err})
	}
	return store.Trouble(err) // which quotes an error of another kind
}

// Starting reports whether a server gives this error while it starts.
func Starting(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) || store.IsStarting(err)
}

// Answered reports whether an error of the broker is an answer of its management API: the broker itself works.
func Answered(err error) bool {
	answer, ok := errors.AsType[*broker.ManagementError](err)
	return ok && answer.Err == nil && !answer.Page
}
