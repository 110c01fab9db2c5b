package store

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Class says what a caller can do about an error.
type Class int

// The classes of errors.
const (
	// ClassNone: no error.
	ClassNone Class = iota
	// ClassRetryable: the transaction lost to another one; the same again may succeed.
	ClassRetryable
	// ClassConflict: a row with this identity exists already.
	ClassConflict
	// ClassRefused: a guard, a constraint or a function of the schema said no, or
	// no row was found. The same again is refused again.
	ClassRefused
	// ClassUnreachable: the server is away or going away; later may succeed.
	ClassUnreachable
	// ClassCanceled: the caller's context ended or a timeout struck.
	ClassCanceled
	// ClassUnknown: COMMIT was sent and its answer was lost.
	ClassUnknown
	// ClassInstallation: the database lacks a relation, a column, a function or an
	// index that a statement needs, or refuses a privilege or the login. No row and no
	// message is to blame: the same again succeeds once an operator has mended it.
	ClassInstallation
	// ClassFatal: anything else, usually a defect.
	ClassFatal
)

// ExpectationCode is the SQLSTATE that attune_expect raises when a statement
// changed another number of rows than planned.
const ExpectationCode = "AT001"

var classNames = [...]string{"none", "retryable", "conflict", "refused", "unreachable", "canceled", "unknown", "installation", "fatal"}

// String is the name of the class in logs and metrics.
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return "invalid"
	}
	return classNames[c]
}

// ClassOf tells the class of an error from this package or from pgx, however
// deep it is wrapped.
func ClassOf(err error) Class {
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		return ClassNone
	case isOutcomeUnknown(err):
		return ClassUnknown
	case errors.As(err, &pgErr):
		return classOfCode(pgErr)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ClassCanceled
	case errors.Is(err, pgx.ErrNoRows), errors.Is(err, pgx.ErrTxCommitRollback):
		return ClassRefused
	case isConnectionError(err):
		return ClassUnreachable
	default:
		return ClassFatal
	}
}

func classOfCode(err *pgconn.PgError) Class {
	switch err.Code {
	case "40001", "40P01", "55P03":
		return ClassRetryable
	case "23505", "23P01":
		return ClassConflict
	case "57014":
		return ClassCanceled
	case "57P01", "57P02", "57P03", "57P05", "25P03", "53300":
		return ClassUnreachable
	case "P0001", "25006", ExpectationCode:
		return ClassRefused
	}
	switch err.Code[:min(len(err.Code), 2)] {
	case "23":
		return ClassRefused
	case "08":
		return ClassUnreachable
	case "42", "0A", "3F", "3D", "28":
		return ClassInstallation
	}
	return ClassFatal
}

// isStalePlan reports whether a connection has prepared a statement for columns that
// have changed since. Any other connection prepares it anew, and it succeeds.
func isStalePlan(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "0A000" && strings.Contains(pgErr.Message, "cached plan must not change result type")
}

func isConnectionError(err error) bool {
	var (
		lost       *lostError
		connectErr *pgconn.ConnectError
		netErr     net.Error
	)
	return errors.As(err, &lost) || errors.As(err, &connectErr) || errors.As(err, &netErr) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// IsLockTimeout reports whether a statement gave up waiting for a lock: somebody
// else holds a row for longer than is usual.
func IsLockTimeout(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "55P03"
}
