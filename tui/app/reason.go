package app

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// reason is the error that an operator can act on: the deadline that ran out,
// the connection that failed or what the server said, without the layers above.
func reason(err error) error {
	var network *net.OpError
	var server interface {
		error
		SQLState() string
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return late{}
	case errors.As(err, &network):
		return network
	case errors.As(err, &server):
		return server
	default:
		return err
	}
}

// late is the deadline of a read that ran out.
type late struct{}

func (late) Error() string { return fmt.Sprintf("no answer within %s", fetchTimeout) }

// Is takes it for what it stands for.
func (late) Is(target error) bool { return target == context.DeadlineExceeded }
