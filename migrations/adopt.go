package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// IncompatibleError refuses a database whose Attune schema is not one the
// engine can work on. Nothing was changed.
type IncompatibleError struct {
	Schema string
	Lack
}

// Lack is what a schema has not and the engine needs.
type Lack struct {
	// Differences has a sentence for each object that is missing or different.
	Differences []string
	// Remedies are the statements that add what is missing, where adding is all
	// that an older schema needs. They are empty if one difference cannot be
	// removed that way.
	Remedies []string
}

// Error lists every difference on a line of its own, and what to run first.
func (e *IncompatibleError) Error() string {
	text := fmt.Sprintf("schema %s cannot be adopted, %d differences:\n  %s",
		e.Schema, len(e.Differences), strings.Join(e.Differences, "\n  "))
	return text + "\n" + e.Advice()
}

// Advice says what to run before adoption is tried again.
func (l Lack) Advice() string {
	if len(l.Remedies) == 0 {
		return "Update the existing installation to a release since " + newest + " first, and check again."
	}
	return "This is an older installation. To bring it to the tables of a release since " + newest +
		", run as their owner, and check again:\n  " + strings.Join(l.Remedies, ";\n  ") + ";"
}

// adopt compares the schema with what the engine needs, and records the base
// files whose tables are already there as applied.
func (s *session) adopt(ctx context.Context, result *Result) error {
	lack, err := s.compare(ctx)
	if err != nil {
		return err
	}
	if len(lack.Differences) > 0 {
		return &IncompatibleError{Schema: s.opts.Schema, Lack: lack}
	}
	if result.WorkQueues, err = s.workQueues(ctx); err != nil {
		return err
	}
	if result.Ignored, err = s.ignored(ctx); err != nil {
		return err
	}
	if len(result.WorkQueues) > 0 && !s.opts.WithoutWorkQueues {
		return &WorkQueuesError{Schema: s.opts.Schema, Queues: result.WorkQueues}
	}
	versions, err := s.presentBase(ctx)
	if err != nil {
		return err
	}
	tx, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin adoption: %w", err)
	}
	if err := recordAdoption(ctx, tx, versions); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit adoption: %w", err)
	}
	s.opts.Logger.Info("An existing Attune schema was adopted", "schema", s.opts.Schema, "base_files", len(versions))
	return nil
}

func recordAdoption(ctx context.Context, tx *sql.Tx, versions []int64) error {
	_, err := tx.ExecContext(ctx, `CREATE TABLE attune_schema_origin (
		origin  text PRIMARY KEY CHECK (origin IN ('own', 'adopted')),
		created timestamptz NOT NULL DEFAULT now())`)
	if err != nil {
		return fmt.Errorf("record origin: %w", err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO attune_schema_origin (origin) VALUES ('adopted')"); err != nil {
		return fmt.Errorf("record origin: %w", err)
	}
	versionStore, err := database.NewStore(goose.DialectPostgres, VersionTable)
	if err != nil {
		return fmt.Errorf("open version table: %w", err)
	}
	if err := versionStore.CreateVersionTable(ctx, tx); err != nil {
		return fmt.Errorf("create version table: %w", err)
	}
	for _, v := range append([]int64{0}, versions...) {
		if err := versionStore.Insert(ctx, tx, database.InsertRequest{Version: v}); err != nil {
			return fmt.Errorf("record version %d: %w", v, err)
		}
	}
	return nil
}

// presentBase lists the base files that adoption records as applied: all but that
// of the history, where the installation writes none. The tables of work queues
// and of the audit log are the installation's own, whether it has them or not.
func (s *session) presentBase(ctx context.Context) ([]int64, error) {
	history := true
	for _, table := range historyTables {
		exists, err := s.hasTable(ctx, table)
		if err != nil {
			return nil, err
		}
		history = history && exists
	}
	versions := baseVersions()
	if !history {
		versions = slices.DeleteFunc(versions, func(v int64) bool { return v == historyFile })
	}
	return versions, nil
}

func baseVersions() []int64 {
	names, _ := fs.Glob(embedded, "sql/*.sql") // the pattern is constant and valid
	var versions []int64
	for _, name := range names {
		if v, err := goose.NumericComponent(name); err == nil && v < firstAdditive {
			versions = append(versions, v)
		}
	}
	return versions
}

// compare lists how the schema differs from what the engine needs.
func (s *session) compare(ctx context.Context) (Lack, error) {
	labels, err := s.compareLabels(ctx)
	if err != nil {
		return Lack{}, err
	}
	lack, err := s.compareColumns(ctx)
	if err != nil {
		return Lack{}, err
	}
	history, err := s.compareHistory(ctx)
	if err != nil {
		return Lack{}, err
	}
	targets, err := s.compareConflictTargets(ctx)
	if err != nil {
		return Lack{}, err
	}
	if others := slices.Concat(labels, history, targets); len(others) > 0 {
		lack.Remedies = nil
		lack.Differences = slices.Concat(labels, lack.Differences, history, targets)
	}
	return lack, nil
}

func (s *session) compareLabels(ctx context.Context) ([]string, error) {
	actual := map[string]string{}
	err := s.eachPair(ctx, actual, `SELECT t.typname, string_agg(e.enumlabel, ' ' ORDER BY e.enumsortorder)
		FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid JOIN pg_namespace n ON n.oid = t.typnamespace
		WHERE n.nspname IN ($1, 'public') GROUP BY t.typname`)
	if err != nil {
		return nil, fmt.Errorf("read enum labels: %w", err)
	}
	var differences []string
	for _, want := range expectedLabels {
		switch got, ok := actual[want.name]; {
		case !ok:
			differences = append(differences, fmt.Sprintf("type %s is missing", want.name))
		case got != want.labels:
			differences = append(differences,
				fmt.Sprintf("type %s has labels (%s), expected (%s)", want.name, got, want.labels))
		}
	}
	return differences, nil
}

func (s *session) compareColumns(ctx context.Context) (Lack, error) {
	actual := map[string]string{}
	err := s.eachPair(ctx, actual, `SELECT c.relname || '.' || a.attname,
		    regexp_replace(format_type(a.atttypid, NULL), '^.*\.', '')
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')`)
	if err != nil {
		return Lack{}, fmt.Errorf("read columns: %w", err)
	}
	tables := map[string]bool{}
	for full := range actual {
		table, _, _ := strings.Cut(full, ".")
		tables[table] = true
	}
	var lack Lack
	beyond := false // something is missing that no statement adds
	for _, table := range expectedTables {
		if !tables[table.name] {
			made, known := laterTables[table.name]
			lack.Differences = append(lack.Differences,
				fmt.Sprintf("table %s is missing", table.name)+since(made.since))
			lack.Remedies = append(lack.Remedies, made.create)
			beyond = beyond || !known
			continue
		}
		for column := range strings.FieldsSeq(table.columns) {
			name, types, _ := strings.Cut(column, ":")
			full := table.name + "." + name
			switch got, ok := actual[full]; {
			case !ok:
				added, known := later[full]
				lack.Differences = append(lack.Differences,
					fmt.Sprintf("column %s is missing", full)+since(added.since))
				lack.Remedies = append(lack.Remedies,
					fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", table.name, name, added.definition))
				beyond = beyond || !known
			case !acceptable(got, types):
				lack.Differences = append(lack.Differences, fmt.Sprintf("column %s has type %s, expected %s", full, got,
					strings.ReplaceAll(types, "|", " or ")))
				beyond = true
			}
		}
	}
	if beyond {
		lack.Remedies = nil
	}
	return lack, nil
}

func since(day string) string {
	if day == "" {
		return ""
	}
	return "; installations have it since " + day
}

// acceptable compares a type with alternatives; text and varchar read alike.
func acceptable(got, types string) bool {
	got = strings.NewReplacer("character varying", "text", "timestamp with time zone", "timestamptz").Replace(got)
	return slices.Contains(strings.Split(types, "|"), got)
}

// compareHistory refuses half of the history: the file that makes the tables
// makes all of them.
func (s *session) compareHistory(ctx context.Context) ([]string, error) {
	var missing []string
	for _, table := range historyTables {
		exists, err := s.hasTable(ctx, table)
		if err != nil {
			return nil, err
		}
		if !exists {
			missing = append(missing, fmt.Sprintf("table %s is missing while other history tables exist", table))
		}
	}
	if len(missing) == len(historyTables) {
		return nil, nil
	}
	return missing, nil
}

// compareConflictTargets asks the planner whether each constraint that makes a
// step idempotent is there, by explaining an insert that relies on it.
func (s *session) compareConflictTargets(ctx context.Context) ([]string, error) {
	var differences []string
	for _, target := range conflictTargets {
		_, err := s.conn.ExecContext(ctx, target.explain)
		var pgErr *pgconn.PgError
		switch {
		case err == nil:
		case errors.As(err, &pgErr) && pgErr.Code == "42P10":
			differences = append(differences, "no unique index for: "+target.protects)
		case errors.As(err, &pgErr) && (pgErr.Code == "42P01" || pgErr.Code == "42703" || pgErr.Code == "42804"):
			// A missing table or column, or a wrong type, is already listed.
		default:
			return nil, fmt.Errorf("look for the constraint of %s: %w", target.protects, err)
		}
	}
	return differences, nil
}

func (s *session) eachPair(ctx context.Context, into map[string]string, query string) error {
	rows, err := s.conn.QueryContext(ctx, query, s.opts.Schema)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // the error of reading is in rows.Err
	for rows.Next() {
		var key, value string
		if err := rows.Scan(&key, &value); err != nil {
			return err
		}
		into[key] = value
	}
	return rows.Err()
}
