package screen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Reason is the part of a read error that helps an operator: the timeout, the failed connection or the
// answer of the server, without the layers above.
func Reason(err error, timeout time.Duration) error {
	var network *net.OpError
	var server interface {
		error
		SQLState() string
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return timeoutError{timeout}
	case errors.As(err, &network):
		return network
	case errors.As(err, &server):
		return server
	default:
		return err
	}
}

// timeoutError is context.DeadlineExceeded with the timeout.
type timeoutError struct{ timeout time.Duration }

func (t timeoutError) Error() string {
	return fmt.Sprintf("no answer within %s", t.timeout.Round(100*time.Millisecond))
}

// Is makes it a context.DeadlineExceeded for errors.Is.
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Answered makes a missing answer an error.
func Answered[T any](answer *T, err error) (*T, error) {
	if answer == nil && err == nil {
		err = errors.New("no answer")
	}
	return answer, err
}
