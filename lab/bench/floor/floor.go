// Package floor is the least that an execution costs on the tables of the product: the same rows, written with plain
// statements in five round trips, or two to complete and promote. It checks nothing, places nothing and knows
// no policies. It exists only to be measured beside the product.
package floor

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
)

// ActionRef is the action of the executions; the caller has inserted it, and a worker.
const ActionRef = "bench.noop_0"

//go:embed sql/*.sql
var files embed.FS

func text(name string) string {
	raw, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // a name in this file
	}
	return string(raw)
}

var (
	requestSQL, seedSQL, seedStatsSQL     = text("request"), text("seed"), text("seed_stats")
	lockSQL, factsSQL, headsSQL           = text("lock"), text("facts"), text("heads")
	scheduleSQL, holdSQL, releaseSQL      = text("schedule"), text("hold"), text("release")
	enqueueSQL, leaveSQL                  = text("enqueue"), text("leave")
	countSQL, statsSQL, loadSQL           = text("count"), text("stats"), text("load")
	sendSQL, sentSQL, startSQL, finishSQL = text("send"), text("sent"), text("start"), text("finish")
)

// Program is the floor program: a client, an engine and a worker with a connection each.
type Program struct {
	client, engine, worker *pgx.Conn

	action, state, workerID int64
	limit                   int
	stats                   bool    // queue_stats is a table
	published               []int64 // rows of the outbox to delete
	running                 []int64 // of a limited queue

	connections []*amqp.Connection
	links       []*link // of requests, dispatches and completions; nil without a broker
}

// Open opens the program on a migrated database with one action and one worker. A limit of 0 means none.
func Open(ctx context.Context, databaseURL, schema string, limit int) (p *Program, err error) {
	cfg, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("read the address of the database: %w", err)
	}
	cfg.RuntimeParams["search_path"] = schema + ", public"
	cfg.RuntimeParams["application_name"] = "floor"
	p = &Program{limit: limit}
	for _, conn := range []**pgx.Conn{&p.client, &p.engine, &p.worker} {
		if *conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
			p.Close(ctx)
			return nil, fmt.Errorf("connect to the database: %w", err)
		}
	}
	err = p.client.QueryRow(ctx, seedSQL, limit, ActionRef).Scan(&p.action, &p.state, &p.workerID, &p.stats)
	if err == nil && p.stats {
		_, err = p.client.Exec(ctx, seedStatsSQL, p.action, max(limit, 1))
	}
	if err != nil {
		p.Close(ctx)
		return nil, fmt.Errorf("insert the queue: %w", err)
	}
	return p, nil
}

// Close closes the connections.
func (p *Program) Close(ctx context.Context) {
	p.unlink()
	for _, conn := range []*pgx.Conn{p.client, p.engine, p.worker} {
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx)) // nothing is pending on it
		}
	}
}

// Wave runs n executions together from their request to their released slots. The queue has no limit.
func (p *Program) Wave(ctx context.Context, n int) error {
	ids, err := p.request(ctx, n)
	if err != nil {
		return err
	}
	var write writes
	p.count(&write, change{active: n, enqueued: n})
	dispatches, err := p.grant(&write, ids)
	if err != nil {
		return err
	}
	p.load(&write, n)
	if err := p.commit(ctx, &write); err != nil {
		return fmt.Errorf("grant: %w", err)
	}
	if err := p.pass(ctx, 1, dispatches...); err != nil {
		return err
	}
	if err := p.run(ctx, ids); err != nil {
		return err
	}
	if err := p.pass(ctx, 2, dispatches...); err != nil { // a completion is about as long
		return err
	}
	write = writes{}
	p.count(&write, change{active: -n, completed: n})
	write.add(n, releaseSQL, ids)
	p.load(&write, -n)
	p.forget(&write)
	return p.commit(ctx, &write)
}

// burst is the number of executions of a request in a flood.
const burst = 250

// Flood runs n executions through the limited queue. It returns the duration of every batch that completed and
// promoted.
func (p *Program) Flood(ctx context.Context, n int) (took []time.Duration, err error) {
	for left := n; left > 0; left -= burst {
		ids, err := p.request(ctx, min(burst, left))
		if err == nil {
			err = p.decide(ctx, ids, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	for len(p.running) > 0 {
		ended := p.running
		p.running = nil
		if err := p.run(ctx, ended); err != nil {
			return nil, err
		}
		begun := time.Now()
		if err := p.decide(ctx, nil, ended); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun))
	}
	var write writes
	p.forget(&write)
	return took, p.commit(ctx, &write)
}

// request is the client's round trip.
func (p *Program) request(ctx context.Context, n int) (ids []int64, err error) {
	m, err := outbox.Encode(message.TypeExecutionRequested,
		message.ExecutionRequested{ActionID: &p.action, ActionRef: ActionRef}, time.Now(), "floor")
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	head, tail, _ := bytes.Cut(m.Body, []byte(`"execution_id":0`))
	rows, err := p.client.Query(ctx, requestSQL, p.action, ActionRef, slices.Repeat([]string{m.ID}, n), m.Exchange,
		m.RoutingKey, m.Type, string(head)+`"execution_id":`, string(tail))
	if err != nil {
		return nil, fmt.Errorf("request %d executions: %w", n, err)
	}
	var id, row int64
	_, err = pgx.ForEachRow(rows, []any{&id, &row}, func() error { ids = append(ids, id); return nil })
	p.published = append(p.published, row)
	if err != nil {
		return nil, fmt.Errorf("request %d executions: %w", n, err)
	}
	return ids, p.pass(ctx, 0, slices.Repeat([][]byte{m.Body}, n)...)
}

// run is the two round trips of the worker.
func (p *Program) run(ctx context.Context, ids []int64) error {
	results := slices.Repeat([]string{`{"succeeded":true,"exit_code":0}`}, len(ids))
	if tag, err := p.worker.Exec(ctx, startSQL, ids, p.workerID); err != nil || int(tag.RowsAffected()) != len(ids) {
		return errors.Join(fmt.Errorf("start %d executions: %s: %w", len(ids), tag, errRows), err)
	}
	tag, err := p.worker.Exec(ctx, finishSQL, ids, results, p.workerID)
	if err != nil || int(tag.RowsAffected()) != len(ids) {
		return errors.Join(fmt.Errorf("finish %d executions: %s: %w", len(ids), tag, errRows), err)
	}
	return nil
}

// decide admits and releases in two round trips, the first under the queue's lock, and promotes waiting executions.
func (p *Program) decide(ctx context.Context, requested, ended []int64) error {
	var active, queued int
	var next int64
	var heads []int64
	most := max(p.limit, len(ended))
	read := &pgx.Batch{}
	read.Queue("begin")
	read.Queue(lockSQL, []int64{p.state}).QueryRow(func(row pgx.Row) error { return row.Scan(&active, &queued, &next) })
	read.Queue(factsSQL, append(requested, ended...)).Query(func(rows pgx.Rows) error {
		var id int64
		var status string
		_, err := pgx.ForEachRow(rows, []any{&id, &status}, func() error { return nil })
		return err
	})
	read.Queue(headsSQL, p.state, most).Query(func(rows pgx.Rows) error {
		var id int64
		var ref string
		var config []byte
		var attempt int
		var updated time.Time
		_, err := pgx.ForEachRow(rows, []any{&id, &ref, &config, &attempt, &updated},
			func() error { heads = append(heads, id); return nil })
		return err
	})
	if err := p.engine.SendBatch(ctx, read).Close(); err != nil {
		return fmt.Errorf("lock the queue: %w", err)
	}
	free := p.limit - active + len(ended)
	promoted := heads[:min(free, len(heads))]
	direct := 0
	if len(promoted) == queued {
		direct = min(free-len(promoted), len(requested))
	}
	enters := requested[direct:]
	granted := append(promoted[:len(promoted):len(promoted)], requested[:direct]...)

	write := writes{open: true}
	if len(ended) > 0 {
		write.add(len(ended), releaseSQL, ended)
	}
	if len(granted) > 0 {
		if _, err := p.grant(&write, granted); err != nil {
			return err
		}
	}
	if len(promoted) > 0 {
		write.add(len(promoted), leaveSQL, promoted)
	}
	if len(enters) > 0 {
		write.add(len(enters), enqueueSQL, enters, p.state, next)
	}
	p.count(&write, change{
		active: len(granted) - len(ended), queued: len(enters) - len(promoted), head: len(promoted),
		next: len(enters), enqueued: len(requested), completed: len(ended),
	})
	p.load(&write, len(granted)-len(ended))
	p.running = append(p.running, granted...)
	return p.commit(ctx, &write)
}

// writes are the statements of one round trip that ends with a commit.
type writes struct {
	open       bool // the transaction has begun
	statements []statement
}

type statement struct {
	sql  string
	args []any
	rows int
}

func (w *writes) add(rows int, sql string, args ...any) {
	w.statements = append(w.statements, statement{sql, args, rows})
}

// grant hands executions to the worker, with the messages that tell it; they replace published ones.
func (p *Program) grant(write *writes, ids []int64) (bodies [][]byte, err error) {
	write.add(len(ids), scheduleSQL, ids, p.workerID)
	write.add(len(ids), holdSQL, ids, p.state, p.workerID)
	route := message.Route{Exchange: message.ExchangeExecutions, Key: message.DispatchKey(p.workerID)}
	now := time.Now()
	var messages []string
	for _, id := range ids {
		m, err := outbox.EncodeTo(route, message.TypeExecutionRequested, message.Dispatch{
			ExecutionID: id, WorkerID: p.workerID, ActionRef: ActionRef, Attempt: 1, ScheduledAttemptUpdatedAt: now,
		}, now, "floor")
		if err != nil {
			return nil, fmt.Errorf("encode a dispatch: %w", err)
		}
		messages, bodies = append(messages, m.ID), append(bodies, m.Body)
	}
	if p.limit > 0 {
		p.forget(write)
	}
	same := func(text string) []string { return slices.Repeat([]string{text}, len(ids)) }
	write.add(1, sendSQL, messages, same(route.Exchange), same(route.Key), same(message.TypeExecutionRequested), bodies,
		same(""))
	return bodies, nil
}

// forget deletes the published rows of the outbox.
func (p *Program) forget(write *writes) {
	write.add(len(p.published), sentSQL, p.published)
	p.published = nil
}

// change is what a batch changes in the counters of the queue.
type change struct{ active, queued, head, next, enqueued, completed int }

func (p *Program) count(write *writes, c change) {
	write.add(1, countSQL, p.state, c.active, c.queued, c.head, c.next, c.enqueued, c.completed)
	if p.stats {
		write.add(1, statsSQL, p.action, c.active, c.queued, c.enqueued, c.completed)
	}
}

func (p *Program) load(write *writes, by int) { write.add(1, loadSQL, p.workerID, by) }

var errRows = errors.New("another number of rows changed")

// commit sends the statements and the commit in one round trip.
func (p *Program) commit(ctx context.Context, write *writes) error {
	batch := &pgx.Batch{}
	if !write.open {
		batch.Queue("begin")
	}
	var wrong error
	for _, s := range write.statements {
		batch.Queue(s.sql, s.args...).Query(func(rows pgx.Rows) error {
			for s.sql == sendSQL && rows.Next() {
				var row int64
				if err := rows.Scan(&row); err != nil {
					return err
				}
				p.published = append(p.published, row)
			}
			rows.Close()
			if n := int(rows.CommandTag().RowsAffected()); n != s.rows && rows.Err() == nil {
				wrong = fmt.Errorf("%w: %d of %d by %s", errRows, n, s.rows, s.sql)
			}
			return rows.Err()
		})
	}
	batch.Queue("commit")
	return errors.Join(p.engine.SendBatch(ctx, batch).Close(), wrong)
}
