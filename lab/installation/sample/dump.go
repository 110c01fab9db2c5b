package sample

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/attune-go/attune/lab/query"
)

var majorVersion = regexp.MustCompile(`\b(\d+)(\.\d+)?`)

func major(version string) int {
	found := majorVersion.FindStringSubmatch(version)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1]) // digits
	return n
}

// findDump returns the newest pg_dump, which must not be older than the server.
func findDump(ctx context.Context, server string) (string, error) {
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_dump") // the patterns are constant and valid
	others, _ := filepath.Glob("/usr/pgsql-*/bin/pg_dump")
	paths = append(paths, others...)
	if onPath, err := exec.LookPath("pg_dump"); err == nil {
		paths = append(paths, onPath)
	}
	best, newest := "", 0
	for _, path := range paths {
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		if version := major(string(out)); err == nil && version > newest {
			best, newest = path, version
		}
	}
	switch {
	case best == "":
		return "", &RefusedError{Text: fmt.Sprintf("pg_dump is not installed: install the client programs of PostgreSQL %d "+
			"or later, such as the package postgresql-client-%d", major(server), major(server))}
	case newest < major(server):
		return "", &RefusedError{Text: fmt.Sprintf("%s is of PostgreSQL %d, but the original is of %d: install "+
			"postgresql-client-%d", best, newest, major(server), major(server))}
	}
	return best, nil
}

// dump returns the statements that create the schema.
func (c *copier) dump(ctx context.Context) (string, error) {
	path, err := findDump(ctx, c.report.Server)
	if err != nil {
		return "", err
	}
	c.cfg.Progress("read the schema with " + path)
	cmd := exec.CommandContext(ctx, path, "--schema-only", "--no-owner", "--no-privileges", "--no-tablespaces",
		"--no-publications", "--no-subscriptions", "--no-security-labels", "--no-comments", "--no-password",
		"--lock-wait-timeout="+milliseconds(lockTimeout), "--schema="+quoted(c.cfg.Schema))
	cmd.Env = libpq(c.cfg.From, c.from.Config())
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(failed.String()), "\n")
		return "", &RefusedError{Text: fmt.Sprintf("read the schema of the original: %s: grant SELECT on all tables and "+
			"sequences, and USAGE on the schema, to the login of --from", text)}
	}
	return out.String(), nil
}

// libpq returns the environment with which pg_dump connects as the connection did. A password stays out of the
// command line, where every user of the machine could read it.
func libpq(from string, cfg *pgx.ConnConfig) []string {
	env := append(os.Environ(), "PGHOST="+cfg.Host, "PGPORT="+strconv.Itoa(int(cfg.Port)), "PGUSER="+cfg.User,
		"PGDATABASE="+cfg.Database, "PGPASSWORD="+cfg.Password, "PGOPTIONS=-c default_transaction_read_only=on")
	settings := map[string]string{}
	if parsed, err := url.Parse(from); err == nil && parsed.Scheme != "" {
		for name := range parsed.Query() {
			settings[name] = parsed.Query().Get(name)
		}
	} else {
		for field := range strings.FieldsSeq(from) {
			name, value, _ := strings.Cut(field, "=")
			settings[name] = strings.Trim(value, "'")
		}
	}
	for _, name := range []string{"sslmode", "sslrootcert", "sslcert", "sslkey"} {
		if value := settings[name]; value != "" {
			env = append(env, "PG"+strings.ToUpper(name)+"="+value)
		}
	}
	return env
}

// block is one object of a dump.
type block struct{ name, kind, sql string }

var blockHead = regexp.MustCompile(`(?m)^-- Name: (.*); Type: ([A-Z ]+); Schema: .*$`)

// blocks splits a dump at the comments before each object. The first block has the settings.
func blocks(dump string) []block {
	var lines []string
	for line := range strings.SplitSeq(dump, "\n") {
		if !strings.HasPrefix(line, `\`) { // \restrict and \unrestrict are commands of psql
			lines = append(lines, line)
		}
	}
	dump = strings.Join(lines, "\n")
	heads := blockHead.FindAllStringSubmatchIndex(dump, -1)
	if len(heads) == 0 {
		return nil
	}
	all := []block{{kind: "SETTINGS", sql: dump[:heads[0][0]]}}
	for i, head := range heads {
		end := len(dump)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		all = append(all, block{name: dump[head[2]:head[3]], kind: dump[head[4]:head[5]], sql: dump[head[1]:end]})
	}
	return all
}

// needed are the kinds of objects without which the copy is another schema.
var needed = []string{"TABLE", "SEQUENCE", "SEQUENCE OWNED BY", "TYPE", "DEFAULT", "CONSTRAINT", "FK CONSTRAINT", "TRIGGER"}

// restore creates the extensions and the schema in the copy.
func (c *copier) restore(ctx context.Context, dump string) error {
	if err := c.extensions(ctx); err != nil {
		return err
	}
	var err error
	if c.report.Hypertables, err = c.hypertables(ctx); err != nil {
		return err
	}
	all := blocks(dump)
	if len(all) == 0 {
		return errors.New("read the schema of the original: pg_dump printed no object")
	}
	c.cfg.Progress(fmt.Sprintf("create %d objects in the private database", len(all)-1))
	for _, b := range all {
		if b.kind == "SETTINGS" {
			for line := range strings.SplitSeq(b.sql, "\n") { // a newer server has settings that this one lacks
				if strings.HasPrefix(line, "SET ") || strings.HasPrefix(line, "SELECT ") {
					_, _ = c.to.Exec(ctx, line)
				}
			}
			continue
		}
		_, err := c.to.Exec(ctx, b.sql, pgx.QueryExecModeSimpleProtocol)
		refused, ok := errors.AsType[*pgconn.PgError](err)
		switch {
		case err == nil, b.kind == "SCHEMA" && ok && refused.Code == "42P06":
		case !ok:
			return fmt.Errorf("create %s %s in the private database: %w", strings.ToLower(b.kind), b.name, err)
		case ofTimescale(b.sql) || !slices.Contains(needed, b.kind):
			c.report.LeftOut = append(c.report.LeftOut,
				fmt.Sprintf("%s %s: %s", strings.ToLower(b.kind), b.name, refused.Message))
		default:
			return fmt.Errorf("create %s %s in the private database: %w", strings.ToLower(b.kind), b.name, err)
		}
	}
	_, err = c.to.Exec(ctx, "SET search_path = "+quoted(c.cfg.Schema)+", public; SET session_replication_role = replica",
		pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return fmt.Errorf("prepare the private database: %w", err)
	}
	return nil
}

// ofTimescale reports objects of TimescaleDB, such as its triggers on hypertables.
func ofTimescale(sql string) bool { return strings.Contains(sql, "_timescaledb_") }

// extensions creates the extensions of the original that this server has.
func (c *copier) extensions(ctx context.Context) error {
	type extension struct{ Name, Schema string }
	found, err := query.Rows(ctx, c.from, "list the extensions of the original", `SELECT e.extname::text, n.nspname::text
		FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname <> 'plpgsql' ORDER BY 1`, nil,
		func(e *extension) []any { return []any{&e.Name, &e.Schema} })
	if err != nil {
		return err
	}
	for _, e := range found {
		var available bool
		err := c.to.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = $1)", e.Name).Scan(&available)
		if err != nil {
			return fmt.Errorf("find extension %s: %w", e.Name, err)
		}
		if !available || e.Name == "timescaledb" { // the copy has plain tables
			c.report.Extensions = append(c.report.Extensions, e.Name)
			continue
		}
		_, err = c.to.Exec(ctx, fmt.Sprintf("CREATE SCHEMA IF NOT EXISTS %s; CREATE EXTENSION IF NOT EXISTS %s SCHEMA %s",
			quoted(e.Schema), quoted(e.Name), quoted(e.Schema)), pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return fmt.Errorf("create extension %s in the private database: %w", e.Name, err)
		}
	}
	return nil
}

// hypertables lists the hypertables of the original.
func (c *copier) hypertables(ctx context.Context) ([]string, error) {
	var exists bool
	err := c.from.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'timescaledb_information' AND c.relname = 'hypertables' AND has_schema_privilege(n.oid, 'USAGE')
		  AND has_table_privilege(c.oid, 'SELECT'))`).Scan(&exists)
	if err != nil {
		return nil, fmt.Errorf("find TimescaleDB: %w", err)
	}
	if !exists {
		return nil, nil
	}
	return query.Column[string](ctx, c.from, "list hypertables", `SELECT hypertable_name::text
		FROM timescaledb_information.hypertables WHERE hypertable_schema = current_schema() ORDER BY 1`)
}
