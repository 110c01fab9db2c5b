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
	// ClassRetryable: the transaction lost to another one, or its connection had prepared a statement for columns that
	// have changed; the same again may succeed.
	ClassRetryable
	// ClassLocked: another transaction holds a row for unusually long.
	ClassLocked
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

var classNames = [...]string{
	"none", "retryable", "locked", "conflict", "refused", "unreachable", "unable", "canceled", "unknown",
	"installation", "fatal",
}

// String is the name of the class in logs and metrics.
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return "invalid"
	}
	return classNames[c]
}

// ExpectationCode is the SQLSTATE that attune_expect raises when a statement
// changed another number of rows than planned.
const ExpectationCode = "AT001"

// SQLSTATEs that mean more than their class and their sentence.
const (
	stalePlan      = "0A000" // of the server's function RevalidateCachedQuery
	deniedState    = "42501"
	readOnlyState  = "25006" // a write on a standby, or on a former primary that became one
	startingState  = "57P03"
	noneLeft       = "53300" // of its connections
	brokenProtocol = "08P01"
)

// state is the meaning of a SQLSTATE.
type state struct {
	class   Class
	values  bool // the values of the statement are the cause
	missing bool // a table, a column, a function or a schema is missing
	// fact and fix tell an operator about it. {login} and {database} are those of the connection, {said} is the message
	// of the server and the code.
	fact, fix string
}

// states is the only table of SQLSTATEs. What is true of all states with a prefix stands at the prefix; a longer entry
// adds to it or replaces it. The class decides what callers do. States without an entry are of the class fatal.
var states = map[string]state{
	"08":    {class: ClassUnreachable},
	"0A":    {class: ClassInstallation, fact: misfit, fix: fixSchema},
	"22":    {values: true},
	"23":    {class: ClassRefused, values: true},
	"23505": {class: ClassConflict},
	"23P01": {class: ClassConflict},
	readOnlyState: {
		class: ClassUnable,
		fact:  "the database is read only{said}",
		fix:   "run attune-executor doctor, which names the cause",
	},
	"25P03": {class: ClassUnreachable},
	"28": {
		class: ClassInstallation,
		fact:  refusedLogin,
		fix:   "correct the user and the password in database.url, or pg_hba.conf of the server",
	},
	"3D": {class: ClassInstallation, fact: misfit, fix: fixSchema},
	"3D000": {
		fact: "the database {database} does not exist on its server",
		fix:  "create it, or correct database.url",
	},
	"3F":    {class: ClassInstallation, fact: misfit, fix: fixSchema},
	"3F000": {missing: true},
	"40001": {class: ClassRetryable},
	"40P01": {class: ClassRetryable},
	"42":    {class: ClassInstallation, fact: misfit, fix: fixSchema},
	deniedState: {
		fact: "the login of database.url lacks a right{said}",
		fix:  "compare it with its role: attune-executor doctor --as engine, worker, operator or viewer",
	},
	"42703":  {missing: true},
	"42883":  {missing: true},
	"42P01":  {missing: true},
	"53":     {class: ClassUnable, fact: "the database lacks resources{said}", fix: readLog},
	"53100":  {fact: "the disk of the database is full{said}", fix: "free space; work continues by itself"},
	noneLeft: {class: ClassUnreachable}, // see noConnectionLeft
	"54":     {values: true},
	"55P03":  {class: ClassLocked},
	"57":     {fact: "the database starts or stops{said}", fix: "start it, or " + readLog},
	"57014": {
		class: ClassCanceled,
		fact:  "the database ended a statement that took too long or was cancelled{said}",
		fix:   "look for locks and load (attune-executor doctor), and for a statement_timeout",
	},
	"57P01":         {class: ClassUnreachable},
	"57P02":         {class: ClassUnreachable},
	startingState:   {class: ClassUnreachable},
	"57P05":         {class: ClassUnreachable},
	"58":            {class: ClassUnable, fact: "files of the database fail{said}", fix: readLog},
	ExpectationCode: {class: ClassRefused},
	"P0001":         {class: ClassRefused},
}

const (
	misfit       = "the schema does not fit this program{said}"
	refusedLogin = "the database refuses the login {login}{said}"
	readLog      = "look into the log of the server"
	fixSchema    = "add to the schema what is missing (attune-executor migrate status and doctor compare it), " +
		"or run the version of attune-executor that fits the schema"
)

func meaningOf(code string) state {
	all := state{class: ClassFatal}
	for length := 2; length <= len(code); length++ {
		one := states[code[:length]]
		if one.class != ClassNone {
			all.class = one.class
		}
		if one.fact != "" {
			all.fact, all.fix = one.fact, one.fix
		}
		all.values, all.missing = all.values || one.values, all.missing || one.missing
	}
	return all
}

func codeOf(err error) string {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		return server.Code
	}
	return ""
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
	case isStalePlan(err):
		return ClassRetryable
	case errors.As(err, &pgErr):
		if class := meaningOf(pgErr.Code).class; class != ClassFatal || !isRefusedConnection(err) {
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
// the schema, another transaction or the caller's context. The same write fails again.
func Divisible(err error) bool {
	switch ClassOf(err) {
	case ClassConflict, ClassRefused, ClassFatal:
		return true
	default:
		return false
	}
}

// IsAway reports whether the server is away or cannot write at the moment, so that other statements
// would fail too.
func IsAway(err error) bool {
	class := ClassOf(err)
	return class == ClassUnreachable || class == ClassUnable
}

// IsLockTimeout reports whether a statement timed out on a lock.
func IsLockTimeout(err error) bool { return ClassOf(err) == ClassLocked }

// IsByValues reports whether the server refused the values of a statement: their form, a constraint or a limit.
func IsByValues(err error) bool { return meaningOf(codeOf(err)).values }

// IsMissing reports whether a statement needs a table, a column, a function or a schema that is missing.
func IsMissing(err error) bool { return meaningOf(codeOf(err)).missing }

// IsStarting reports whether the server refuses connections because it starts.
func IsStarting(err error) bool { return codeOf(err) == startingState }

// Answered reports whether the server sent the error.
func Answered(err error) bool { return codeOf(err) != "" }

// Denied reports whether err says that a login lacks a privilege, and returns the server's message about it, which
// names the object in the server's language.
func Denied(err error) (message string, denied bool) {
	if server, ok := errors.AsType[*pgconn.PgError](err); ok && server.Code == deniedState {
		return server.Message, true
	}
	return "", false
}

// isStalePlan reports whether a connection prepared a statement for columns that have changed
// since. Any other connection prepares it again, and it succeeds. The server's function tells it from
// other errors of this code: the message is in the server's language.
func isStalePlan(err error) bool {
	server, ok := errors.AsType[*pgconn.PgError](err)
	return ok && server.Code == stalePlan && server.Routine == "RevalidateCachedQuery"
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
