package doctor

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/core/store"
)

// maxRows bounds the reported rows of one query.
const maxRows = 20

//go:embed invariants.sql
var invariantsSQL string

// drifts are the queries by which a repair finds what to correct. Invariants use them as tables.
var drifts = map[string]struct {
	sql  string
	args []any
}{
	"queue_drift":  {sql: store.RepairQueues, args: []any{nil, 0, true}},
	"worker_drift": {sql: store.RepairLoads, args: []any{nil}},
	"scope_drift":  {sql: store.RepairScopes, args: []any{nil}},
	"stats_drift":  {sql: store.RepairStats, args: []any{nil}},
	// ended two minutes ago; entries not read
	"ended_drift": {sql: store.RepairEnded, args: []any{false, 120.0, 0, maxRows}},
}

// Violation is one row that an invariant query returned.
type Violation struct {
	Check     string // the name of the query
	Invariant string // the promise
	Subject   string // the kind and id of the broken row
	Detail    string // the fault
}

// String describes the violation in one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", v.Check, v.Subject, v.Detail, v.Invariant)
}

// Check is one invariant query.
type Check struct {
	Name      string
	Invariant string
	SQL       string
	Args      []any
}

// Beginner opens a transaction, as a pool or a connection does.
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
			continue // the head of the file
		}
		invariant, sql, _ := strings.Cut(guards, "\n")
		check := Check{
			Name:      strings.TrimSpace(head),
			Invariant: strings.TrimSpace(invariant),
			SQL:       strings.TrimSuffix(strings.TrimSpace(sql), ";"),
		}
		for name, drift := range drifts {
			if strings.Contains(sql, "FROM "+name+" ") {
				check.SQL = fmt.Sprintf("WITH %s AS (%s) %s", name, drift.sql, check.SQL)
				check.Args = drift.args
			}
		}
		checks = append(checks, check)
	}
	return checks
}

// Invariants runs every query against one snapshot of the database, whose connections must have the
// platform's schema on their search path. It returns at most maxRows violations of each query. An
// error means that a query could not run.
func Invariants(ctx context.Context, db Beginner) ([]Violation, error) {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, fmt.Errorf("open a snapshot for the invariants: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // read only
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
	rows, err := tx.Query(ctx, fmt.Sprintf("select subject, detail from (%s) violation limit %d", check.SQL, maxRows),
		check.Args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Violation, error) {
		violation := Violation{Check: check.Name, Invariant: check.Invariant}
		err := row.Scan(&violation.Subject, &violation.Detail)
		return violation, err
	})
}
