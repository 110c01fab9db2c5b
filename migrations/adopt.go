package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// IncompatibleError refuses to adopt an Attune schema that the engine cannot use. Nothing was changed.
type IncompatibleError struct {
	Schema string
	Lack
}

// Lack describes how a schema differs from the engine's needs.
type Lack struct {
	// Differences has a sentence for each missing or different object.
	Differences []string
	// Remedies are the statements that add the missing objects of an older schema. They are empty if one
	// difference needs more.
	Remedies []string
}

// Error says how many differences there are, and what to do.
func (e *IncompatibleError) Error() string {
	return fmt.Sprintf("schema %s cannot be adopted: %d differences, which `attune-executor migrate check` lists; %s",
		e.Schema, len(e.Differences), e.Advice())
}

// Advice says in one line how to remove the differences.
func (l Lack) Advice() string {
	if len(l.Remedies) == 0 {
		return "update the existing installation to a release since " + newest + " first, and check again"
	}
	return "the installation is older than its release of " + newest +
		": as the owner of its tables, run the statements that are printed with them, and check again"
}

// Script returns the remedies as text to paste into psql, empty without any.
func (l Lack) Script(schema string) string {
	if len(l.Remedies) == 0 {
		return ""
	}
	return "SET search_path TO " + pgx.Identifier{schema}.Sanitize() + ";\n" + strings.Join(l.Remedies, ";\n") + ";\n"
}

// adopt compares the schema with the engine's needs, and records that its published tables are adopted.
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
	tx, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin adoption: %w", err)
	}
	if err := recordAdoption(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit adoption: %w", err)
	}
	s.opts.Logger.Info("Existing Attune schema adopted", "schema", s.opts.Schema)
	return nil
}

func recordAdoption(ctx context.Context, tx *sql.Tx) error {
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
	if err := versionStore.Insert(ctx, tx, database.InsertRequest{Version: 0}); err != nil {
		return fmt.Errorf("fill version table: %w", err)
	}
	return nil
}

// compare returns the differences between the schema and the engine's needs.
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
	actual, err := s.pairs(ctx, `SELECT t.typname, string_agg(e.enumlabel, ' ' ORDER BY e.enumsortorder)
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
	actual, err := s.pairs(ctx, `SELECT c.relname || '.' || a.attname,
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
	beyond := false // no statement removes one of the differences
	for _, table := range expectedTables {
		if !tables[table.name] {
			created, known := laterTables[table.name]
			lack.Differences = append(lack.Differences,
				fmt.Sprintf("table %s is missing", table.name)+since(created.since))
			lack.Remedies = append(lack.Remedies, created.create)
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
			case !slices.Contains(strings.Split(types, "|"), spelling.Replace(got)):
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

// spelling returns the types as expectedTables spells them; text and varchar are alike.
var spelling = strings.NewReplacer("character varying", "text", "timestamp with time zone", "timestamptz")

// compareHistory refuses a part of the history tables: one file creates all of them.
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

// compareConflictTargets checks each constraint that makes a step idempotent: the planner refuses to explain
// an insert without it.
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
			return nil, fmt.Errorf("check the constraint of %s: %w", target.protects, err)
		}
	}
	return differences, nil
}

// pairs returns the rows of a query by their first column.
func (s *session) pairs(ctx context.Context, query string) (map[string]string, error) {
	rows, err := scanRows(ctx, s, func(pair *[2]string) []any { return []any{&pair[0], &pair[1]} }, query,
		s.opts.Schema)
	values := make(map[string]string, len(rows))
	for _, pair := range rows {
		values[pair[0]] = pair[1]
	}
	return values, err
}
