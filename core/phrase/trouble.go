package phrase

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"syscall"
)

// Trouble is what is wrong with a server, and what to do about it. Commands, doctor, /readyz, alerts, log and
// dashboard say it in these words. It is an error where one has to be returned.
type Trouble struct {
	// Fact names the server and its state, such as "the database refuses the login attune"; empty if all is well.
	Fact string `json:"fact"`
	// Fix is what to do.
	Fix string `json:"fix,omitempty"`
	// Cause is the server's error, if the trouble is returned as an error.
	Cause error `json:"-"`
}

// Error implements error.
func (t Trouble) Error() string { return t.String() }

// Unwrap returns the server's error.
func (t Trouble) Unwrap() error { return t.Cause }

// Because returns the trouble as an error with its cause.
func (t Trouble) Because(err error) error {
	t.Cause = err
	return t
}

// String returns the sentence; empty if all is well.
func (t Trouble) String() string {
	if t.Fix == "" {
		return t.Fact
	}
	return t.Fact + ": " + t.Fix
}

// Network says what an error of a connection means, as the end of a sentence about the server; empty for an error
// that is none.
func Network(err error) string {
	var (
		untrusted *tls.CertificateVerificationError
		unknown   x509.UnknownAuthorityError
		otherHost x509.HostnameError
		plain     tls.RecordHeaderError
		name      *net.DNSError
		network   *net.OpError
		slow      net.Error
	)
	switch {
	case errors.As(err, &untrusted):
		return "has a certificate that is not trusted (" + untrusted.Err.Error() + ")"
	case errors.As(err, &unknown), errors.As(err, &otherHost):
		return "has a certificate that is not trusted"
	case errors.As(err, &plain):
		return "does not speak TLS"
	case errors.As(err, &name):
		return "has a name that is not known, " + name.Name
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections, nothing listens there"
	case errors.Is(err, syscall.ENOENT) && errors.As(err, &network):
		return "refuses connections, there is no such socket"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "is out of reach, there is no way to it"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE) && errors.As(err, &network):
		return "broke off the connection"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return "does not answer in time"
	default:
		return ""
	}
}
