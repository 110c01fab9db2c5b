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
		return fmt.Errorf("no answer within %s", fetchTimeout)
	case errors.As(err, &network):
		return network
	case errors.As(err, &server):
		return server
	default:
		return err
	}
}
