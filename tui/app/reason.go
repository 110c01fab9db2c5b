package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// reason is the error that an operator can act on: the deadline that ran out,
// the connection that failed or what the server said, without the layers above.
func reason(err error) error { return reasonAfter(err, fetchTimeout) }

// reasonAfter is reason for a read that was given so long.
func reasonAfter(err error, timeout time.Duration) error {
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
