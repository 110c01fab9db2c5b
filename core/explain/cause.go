package explain

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/attune-go/attune/core/broker"
)

// Cause says in a few words what a server's error means, such as "refuses the login"; empty if
// unknown. It stands before the error itself, because a narrow line is cut behind it.
func Cause(err error) string {
	if err == nil {
		return ""
	}
	for _, of := range []func(error) string{causeOfServer, causeOfManagement, causeOfTrust, causeOfNetwork} {
		if cause := of(err); cause != "" {
			return cause
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "does not answer in time"
	case strings.Contains(err.Error(), "ACCESS_REFUSED"),
		strings.Contains(err.Error(), "username or password not allowed"):
		return "refuses the login"
	default:
		return ""
	}
}

// causesByState are causes by SQLSTATE or its class.
var causesByState = map[string]string{
	"28": "refuses the login", "3D000": "has no such database", "42501": "does not let this login read everything",
	"42P01": "lacks a table of Attune", "42703": "lacks a column of Attune", "53300": "has no connection left",
	"53":    "is out of resources",
	"57014": "takes too long for an answer", "57P": "shuts down or starts", "25006": "is read-only",
}

func causeOfServer(err error) string {
	var server interface {
		error
		SQLState() string
	}
	if !errors.As(err, &server) {
		return ""
	}
	state := server.SQLState()
	for length := len(state); length >= 2; length-- {
		if cause := causesByState[state[:length]]; cause != "" {
			return cause
		}
	}
	return ""
}

func causeOfManagement(err error) string {
	var answer *broker.ManagementError
	if !errors.As(err, &answer) {
		return ""
	}
	switch {
	case answer.StatusCode == http.StatusUnauthorized:
		return "refuses the login"
	case answer.StatusCode == http.StatusForbidden:
		return "does not let this login read it"
	case answer.StatusCode >= http.StatusInternalServerError:
		return "fails by itself"
	default:
		return ""
	}
}

func causeOfTrust(err error) string {
	var untrusted *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var otherHost x509.HostnameError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &untrusted), errors.As(err, &unknown), errors.As(err, &otherHost):
		return "has a certificate that is not trusted"
	case errors.As(err, &plain):
		return "does not speak TLS"
	default:
		return ""
	}
}

func causeOfNetwork(err error) string {
	var name *net.DNSError
	var network *net.OpError
	switch {
	case errors.As(err, &name):
		return "has a name that is not known, " + name.Name
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections, nothing listens there"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "is out of reach, there is no way to it"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "broke off the connection"
	case errors.As(err, &network) && network.Timeout():
		return "does not answer in time"
	default:
		return ""
	}
}
