package store

import (
	"context"
	"errors"
	"io"
	"net"

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
	// ClassRefused: a guard, a constraint or a function of the schema refused the statement, or no
	// row was found. A retry is refused again.
	ClassRefused
	// ClassUnreachable: the server is away or stopping; a later try may succeed.
	ClassUnreachable
	// ClassUnable: the server answers but cannot write at the moment: its disk is full, its files
	// fail, or it is a standby. No row and no message is the cause; a later try may succeed.
	ClassUnable
	// ClassCanceled: the caller's context ended or a timeout passed.
	ClassCanceled
	// ClassUnknown: COMMIT was sent and its answer was lost.
	ClassUnknown
	// ClassInstallation: the database lacks a relation, a column, a function or an index that a
	// statement needs, or refuses a privilege or the login. No row and no message is the cause: a
	// retry succeeds once an operator has mended it.
	ClassInstallation
	// ClassFatal: anything else, usually a defect.
	ClassFatal
)

// ExpectationCode is the SQLSTATE that attune_expect raises when a statement
// changed another number of rows than planned.
const ExpectationCode = "AT001"

var classNames = [...]string{
	"none", "retryable", "conflict", "refused", "unreachable", "unable", "canceled", "unknown",
	"installation", "fatal",
}

// String is the name of the class in logs and metrics.
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return "invalid"
	}
	return classNames[c]
}

// ClassOf returns the class of an error from this package or from pgx, however deeply it is
// wrapped.
func ClassOf(err error) Class {
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		return ClassNone
	case isOutcomeUnknown(err):
		return ClassUnknown
	case errors.As(err, &pgErr):
		if class := classOfCode(pgErr.Code); class != ClassFatal || !isRefusedConnection(err) {
			return class
		}
		return ClassUnreachable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ClassCanceled
	case errors.Is(err, pgx.ErrNoRows), errors.Is(err, pgx.ErrTxCommitRollback):
		return ClassRefused
	case isConnectionError(err):
		return ClassUnreachable
	case errors.Is(err, errReadOnly):
		return ClassUnable
	default:
		return ClassFatal
	}
}

// Divisible reports whether parts of the failed transaction may succeed: one of its rows is the cause, not the server,
// the schema or the caller's context.
func Divisible(err error) bool {
	switch ClassOf(err) {
	case ClassConflict, ClassRefused, ClassFatal:
		return true
	default:
		return false
	}
}

// classes maps SQLSTATE codes, or their prefixes, to classes. Other codes are defects.
var classes = map[string]Class{
	"40001": ClassRetryable, "40P01": ClassRetryable, "55P03": ClassRetryable, // see IsLockTimeout
	"23505": ClassConflict, "23P01": ClassConflict,
	"23": ClassRefused, "P0001": ClassRefused, ExpectationCode: ClassRefused,
	"08": ClassUnreachable, "57P01": ClassUnreachable, "57P02": ClassUnreachable, "57P03": ClassUnreachable,
	"57P05": ClassUnreachable, "25P03": ClassUnreachable, "53300": ClassUnreachable,
	readOnlyCode: ClassUnable, "53": ClassUnable, "58": ClassUnable,
	"57014": ClassCanceled,
	"42":    ClassInstallation, "0A": ClassInstallation, "3F": ClassInstallation, "3D": ClassInstallation,
	"28": ClassInstallation,
}

func classOfCode(code string) Class {
	for length := len(code); length >= 2; length-- {
		if class, ok := classes[code[:length]]; ok {
			return class
		}
	}
	return ClassFatal
}

// readOnlyCode is the SQLSTATE of a write on a standby, or on a former primary that became one.
const readOnlyCode = "25006"

// isStalePlan reports whether a connection prepared a statement for columns that have changed
// since. Any other connection prepares it again, and it succeeds. The server's function tells it from
// other errors of this code: the message is in the server's language.
func isStalePlan(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "0A000" && pgErr.Routine == "RevalidateCachedQuery"
}

// isRefusedConnection reports whether the server refused the connection and has seen no statement, for
// example because a database that is being restored accepts no connections.
func isRefusedConnection(err error) bool {
	var connectErr *pgconn.ConnectError
	return errors.As(err, &connectErr)
}

// isConnectionError does not take every net.Error: a system call that failed on a file is one too.
func isConnectionError(err error) bool {
	var (
		lost    *lostError
		network *net.OpError
		name    *net.DNSError
	)
	return errors.As(err, &lost) || isRefusedConnection(err) || errors.As(err, &network) || errors.As(err, &name) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// IsAway reports whether the server is away or cannot write at the moment, so that other statements
// would fail too.
func IsAway(err error) bool {
	class := ClassOf(err)
	return class == ClassUnreachable || class == ClassUnable
}

// IsLockTimeout reports whether a statement timed out on a lock: another transaction holds a row
// for unusually long.
func IsLockTimeout(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "55P03"
}
