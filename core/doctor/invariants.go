package doctor

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// maxRows bounds what one query reports: the first few rows tell what is wrong.
const maxRows = 20

//go:embed invariants.sql
var invariantsSQL string

// Violation is one row that an invariant query returned.
type Violation struct {
	Check     string // the query's name
	Invariant string // the promise it guards
	Subject   string // what is wrong: a kind of row and its id
	Detail    string // how it is wrong
}

// String is one line for a person.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", v.Check, v.Subject, v.Detail, v.Invariant)
}

// Check is one invariant query.
type Check struct {
	Name      string
	Invariant string
	SQL       string
}

// Beginner opens a transaction; a pool and a connection both do.
type Beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Checks returns the invariant queries in the order of the file.
func Checks() []Check {
	var checks []Check
	for block := range strings.SplitSeq(invariantsSQL, "-- name: ") {
		head, body, _ := strings.Cut(block, "\n")
		guards, ok := strings.CutPrefix(body, "-- guards: ")
		if !ok {
			continue // the comment at the head of the file
		}
		invariant, sql, _ := strings.Cut(guards, "\n")
		checks = append(checks, Check{
			Name:      strings.TrimSpace(head),
			Invariant: strings.TrimSpace(invariant),
			SQL:       strings.TrimSuffix(strings.TrimSpace(sql), ";"),
		})
	}
	return checks
}

// Invariants runs every query against one snapshot of the database, whose
// connections must have the platform's schema on their search path. It returns
// what it found, at most a few rows a query; an error means that it could not
// look.
func Invariants(ctx context.Context, db Beginner) ([]Violation, error) {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, fmt.Errorf("open a snapshot for the invariants: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it only read
	var found []Violation
	for _, check := range Checks() {
		violations, err := run(ctx, tx, check)
		if err != nil {
			return nil, fmt.Errorf("check %s: %w", check.Name, err)
		}
		found = append(found, violations...)
	}
	return found, nil
}

func run(ctx context.Context, tx pgx.Tx, check Check) ([]Violation, error) {
	rows, err := tx.Query(ctx, fmt.Sprintf("select subject, detail from (%s) violation limit %d", check.SQL, maxRows))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Violation, error) {
		violation := Violation{Check: check.Name, Invariant: check.Invariant}
		err := row.Scan(&violation.Subject, &violation.Detail)
		return violation, err
	})
}
