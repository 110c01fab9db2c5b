package screen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Reason is the error of a read that an operator can act on: the deadline that ran out,
// the connection that failed or what the server said, without the layers above.
func Reason(err error, timeout time.Duration) error {
	var network *net.OpError
	var server interface {
		error
		SQLState() string
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return late{timeout}
	case errors.As(err, &network):
		return network
	case errors.As(err, &server):
		return server
	default:
		return err
	}
}

// late is the deadline of a read that ran out.
type late struct{ timeout time.Duration }

func (l late) Error() string { return fmt.Sprintf("no answer within %s", l.timeout) }

// Is takes it for what it stands for.
func (late) Is(target error) bool { return target == context.DeadlineExceeded }

// Answered makes no answer at all an error.
func Answered[T any](answer *T, err error) (*T, error) {
	if answer == nil && err == nil {
		err = errors.New("no answer")
	}
	return answer, err
}
