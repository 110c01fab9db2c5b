package sample

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/lab/query"
)

// live are the statuses of executions that have not ended.
const live = "status IN ('requested', 'scheduling', 'scheduled', 'running', 'canceling')"

// sampled are the tables of which some rows are copied, chosen with the rows that they refer to.
var sampled = []string{"execution", "enforcement", "event", "workflow_execution"}

// growing are the tables of which the newest rows are copied.
var growing = map[string]string{
	"audit_event": "created", "execution_history": "time", "worker_history": "time", "sensor_process_history": "time",
	"artifact": "id", "notification": "id", "pack_test_execution": "id", "supervisor_run": "started_at",
	"work_queue_item": "id", "work_queue_dispatch": "id",
}

// set is the chosen ids of a table.
type set map[int64]bool

func (s set) literal() string {
	return "'{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.slice()), " ", ","), "[]") + "}'::bigint[]"
}

// rows chooses the rows and copies them.
func (c *copier) rows(ctx context.Context) error {
	tables, err := c.tables(ctx)
	if err != nil {
		return err
	}
	c.cfg.Progress("choose the rows")
	chosen, err := c.choose(ctx, tables)
	if err != nil {
		return err
	}
	keys, err := foreignKeys(ctx, c.to)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if slices.Contains(secret, t.name) {
			c.report.NotCopied = append(c.report.NotCopied, t.name)
			continue
		}
		rows, err := c.copyRows(ctx, t, t.selection(c.cfg.Newest, chosen, keys))
		if err != nil {
			return err
		}
		c.report.Tables = append(c.report.Tables, Table{
			Name: t.name, Rows: rows,
			Whole: !slices.Contains(sampled, t.name) && growing[t.name] == "",
		})
	}
	var total int64
	for _, t := range c.report.Tables {
		total += t.Rows
	}
	c.cfg.Progress(fmt.Sprintf("copied %d rows of %d tables", total, len(c.report.Tables)))
	return nil
}

// table is a table of the original that the copy has too.
type table struct {
	name    string
	columns []string // without generated ones
}

func (c *copier) tables(ctx context.Context) ([]table, error) {
	return query.Rows(ctx, c.tx, "list the tables of the original", `SELECT c.relname::text, array_agg(a.attname::text ORDER BY a.attnum)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
		GROUP BY c.oid, c.relname ORDER BY c.relname`, nil,
		func(t *table) []any { return []any{&t.name, &t.columns} })
}

// selection is the condition and the order of the rows to copy. Rows that refer to a row of a sampled table are
// copied if that row is.
func (t table) selection(newest int, chosen map[string]set, keys []foreignKey) string {
	var where []string
	if ids, ok := chosen[t.name]; ok {
		where = append(where, "id = ANY ("+ids.literal()+")")
	} else {
		for _, k := range keys {
			if ids, ok := chosen[k.parent]; ok && k.table == t.name {
				where = append(where, fmt.Sprintf("(%[1]s IS NULL OR %[1]s = ANY (%[2]s))", quoted(k.column),
					ids.literal()))
			}
		}
		if t.name == "execution_secret_value" {
			where = append(where, "(entity_type <> 'execution' OR entity_id = ANY ("+chosen["execution"].literal()+"))")
		}
	}
	sql := ""
	if len(where) > 0 {
		sql = " WHERE " + strings.Join(where, " AND ")
	}
	switch by := growing[t.name]; {
	case chosen[t.name] != nil:
	case by != "" && slices.Contains(t.columns, by):
		sql += fmt.Sprintf(" ORDER BY %s DESC LIMIT %d", quoted(by), newest)
	default:
		sql += fmt.Sprintf(" LIMIT %d", largest)
	}
	return sql
}

// copyRows streams rows from the original to the copy.
func (c *copier) copyRows(ctx context.Context, t table, selection string) (int64, error) {
	var read, write []string
	for _, column := range t.columns {
		write = append(write, quoted(column))
		if slices.Contains(blank[t.name], column) {
			read = append(read, "NULL")
			continue
		}
		read = append(read, quoted(column))
	}
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := c.tx.Conn().PgConn().CopyTo(ctx, writer, fmt.Sprintf("COPY (SELECT %s FROM %s%s) TO STDOUT",
			strings.Join(read, ", "), quoted(t.name), selection))
		done <- err
		_ = writer.CloseWithError(err) // always nil
	}()
	tag, err := c.to.PgConn().CopyFrom(ctx, reader, fmt.Sprintf("COPY %s (%s) FROM STDIN", quoted(t.name),
		strings.Join(write, ", ")))
	_ = reader.Close() // always nil; it ends a CopyTo that still writes
	if failed := <-done; failed != nil && err == nil {
		err = failed
	}
	if err != nil {
		return 0, fmt.Errorf("copy rows of %s: %w", t.name, err)
	}
	return tag.RowsAffected(), nil
}

// choose returns the ids of the rows of the sampled tables: the newest rows, the rows that have not ended, and
// all rows that they refer to.
func (c *copier) choose(ctx context.Context, tables []table) (map[string]set, error) {
	chosen := map[string]set{}
	for _, name := range sampled {
		chosen[name] = set{}
		if !slices.ContainsFunc(tables, func(t table) bool { return t.name == name }) {
			return nil, &RefusedError{Text: fmt.Sprintf("the schema has no table %s: update the installation first; "+
				"attune-executor migrate check names all differences", name)}
		}
	}
	seeds := []struct{ table, query string }{
		{"execution", "SELECT id FROM execution WHERE " + live + " ORDER BY id DESC LIMIT " + strconv.Itoa(c.cfg.Live)},
		{"execution", "SELECT id FROM execution ORDER BY id DESC LIMIT " + strconv.Itoa(c.cfg.Newest)},
		{"enforcement", "SELECT id FROM enforcement WHERE status = 'created' ORDER BY id DESC LIMIT " +
			strconv.Itoa(c.cfg.Live)},
		{"enforcement", "SELECT id FROM enforcement ORDER BY id DESC LIMIT " + strconv.Itoa(c.cfg.Newest)},
		{"event", "SELECT id FROM event ORDER BY created DESC LIMIT " + strconv.Itoa(c.cfg.Newest)},
	}
	for _, seed := range seeds {
		if _, err := c.add(ctx, chosen[seed.table], seed.query); err != nil {
			return nil, err
		}
	}
	err := c.tx.QueryRow(ctx, "SELECT greatest(count(*) - $1, 0) FROM execution WHERE "+live, c.cfg.Live).
		Scan(&c.report.LiveLeft)
	if err != nil {
		return nil, fmt.Errorf("count live executions: %w", err)
	}
	for grown := true; grown; {
		grown = false
		executions, enforcements := chosen["execution"], chosen["enforcement"]
		workflows := chosen["workflow_execution"]
		for _, step := range []struct {
			into  set
			query string
			ids   set
		}{
			{executions, "SELECT parent FROM execution WHERE id = ANY ($1) AND parent IS NOT NULL", executions},
			{
				executions, "SELECT original_execution FROM execution WHERE id = ANY ($1) AND original_execution IS NOT NULL",
				executions,
			},
			{executions, "SELECT id FROM execution WHERE parent IN (SELECT id FROM execution WHERE id = ANY ($1) AND " +
				live + ")", executions},
			{enforcements, "SELECT enforcement FROM execution WHERE id = ANY ($1) AND enforcement IS NOT NULL", executions},
			{chosen["event"], "SELECT event FROM enforcement WHERE id = ANY ($1) AND event IS NOT NULL", enforcements},
			{workflows, "SELECT id FROM workflow_execution WHERE execution = ANY ($1)", executions},
		} {
			more, err := c.add(ctx, step.into, step.query, step.ids.slice())
			if err != nil {
				return nil, err
			}
			grown = grown || more
		}
	}
	return chosen, nil
}

func (s set) slice() []int64 { return slices.Collect(maps.Keys(s)) }

// add adds the ids that a query returns, and reports whether one is new.
func (c *copier) add(ctx context.Context, to set, sql string, args ...any) (bool, error) {
	ids, err := query.Column[int64](ctx, c.tx, fmt.Sprintf("%.60s", sql), sql, args...)
	if err != nil {
		return false, err
	}
	before := len(to)
	for _, id := range ids {
		to[id] = true
	}
	return len(to) > before, nil
}
