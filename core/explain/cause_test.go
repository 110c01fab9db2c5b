package explain

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/broker"
)

func TestCausesAreShort(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for want, err := range map[string]error{
		"refuses the login": &pgconn.PgError{
			Code:    "28P01",
			Message: "password authentication failed",
		},
		"has no such database":                       &pgconn.PgError{Code: "3D000"},
		"shuts down or starts":                       &pgconn.PgError{Code: "57P03"},
		"takes too long for an answer":               &pgconn.PgError{Code: "57014"},
		"has no connection left":                     &pgconn.PgError{Code: "53300"},
		"is out of resources":                        &pgconn.PgError{Code: "53100"},
		"does not let this login read it":            &broker.ManagementError{StatusCode: 403},
		"refuses connections, nothing listens there": dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"is out of reach, there is no way to it":     dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)),
		"has a name that is not known, mq.example": dial(&net.DNSError{
			Name: "mq.example", Err: "no such host",
			IsNotFound: true,
		}),
		"has a certificate that is not trusted": x509.UnknownAuthorityError{},
		"does not answer in time":               context.DeadlineExceeded,
		"":                                      errors.New("something else"),
	} {
		require.Equal(t, want, Cause(fmt.Errorf("read the overview: %w", err)))
	}
	require.Equal(t, "refuses the login",
		Cause(&broker.ManagementError{StatusCode: 401, Reason: "credentials were refused"}))
	require.Equal(t, "refuses the login",
		Cause(errors.New(`Exception (403) Reason: "username or password not allowed"`)))
	require.Empty(t, Cause(nil))
}
