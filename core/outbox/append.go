package outbox

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/tracing"
)

// Message is one message to publish after the commit.
type Message struct {
	ID         string // a UUID; the same in every publication
	Exchange   string
	RoutingKey string
	Type       string
	Body       []byte
	Trace      string // trace context of its cause; may be empty
	// Properties are all properties of a message that is sent again; nil of one that the engine made.
	Properties *broker.Properties
}

// resent reports whether an operator sends the message to a destination that the engine does not
// declare. Earlier versions marked it by a header only.
func (m *Message) resent() bool {
	return m.Properties != nil || strings.HasPrefix(m.Trace, headerPrefix)
}

// Header is a header of a message that is sent again.
func (m *Message) Header(name string) string {
	table := headers(m.Trace)
	if m.Properties != nil {
		table = m.Properties.Headers
	}
	text, _ := table[name].(string)
	return text
}

// wire is the message as it is published.
func (m *Message) wire(at time.Time) broker.Message {
	return broker.Message{
		ID: m.ID, Exchange: m.Exchange, RoutingKey: m.RoutingKey, Type: m.Type, Body: m.Body, Timestamp: at,
		Headers: headers(m.Trace), Properties: m.Properties, Alone: m.resent(),
	}
}

// Encode makes a message of a type, addressed to the route of that type.
func Encode[P any](kind string, payload P, at time.Time, source string) (Message, error) {
	route, _ := message.RouteOf(kind)
	return EncodeTo(route, kind, payload, at, source)
}

// EncodeTo is Encode with another route.
func EncodeTo[P any](route message.Route, kind string, payload P, at time.Time, source string) (Message, error) {
	envelope := message.New(kind, payload, at, source)
	body, err := envelope.Encode()
	if err != nil {
		return Message{}, fmt.Errorf("encode %s for %s: %w", kind, route.Key, err)
	}
	return Message{
		ID: envelope.MessageID, Exchange: route.Exchange, RoutingKey: route.Key, Type: kind, Body: body,
	}, nil
}

// maxResult bounds the result copied into a completion message. The row has the whole result; a worker may have written
// one that no consumer accepts in a message.
const maxResult = 1 << 20

// Completed is the execution.completed of an ended execution, for the programs besides its worker.
func Completed(e store.ReadOutcomesRow, at time.Time, source string) (Message, error) {
	payload := message.ExecutionCompleted{
		ExecutionID: e.ID, ActionRef: e.ActionRef, Status: string(e.Status),
		Result:      jsonvalue.Copy(e.Result, maxResult),
		CompletedAt: e.FinishedAt.UTC(),
	}
	if e.Action != nil {
		payload.ActionID = *e.Action
	}
	return Encode(message.TypeExecutionCompleted, payload, at, source)
}

// Publishing publishes committed messages at once; a *Relay is one.
type Publishing interface {
	Published(id int64, messages []Message)
}

// Channel is the notification channel for rows whose writer cannot publish them. The payload is the
// schema's name and the row's id.
const Channel = "attune_outbox"

// Send writes the messages in the caller's transaction and has them published right after its
// commit: by relay, or without one by an engine, which gets a notification. If no engine receives
// it, a sweep publishes the messages within seconds.
func Send(ctx context.Context, tx *store.Tx, relay Publishing, messages []Message) (int64, error) {
	id, err := appendRow(ctx, tx, relay, messages)
	if err != nil {
		return 0, err
	}
	return id, Publish(ctx, tx, relay, id, messages)
}

// Publish has the messages of a row that the transaction wrote published after its commit, as Send
// does.
func Publish(ctx context.Context, tx *store.Tx, relay Publishing, id int64, messages []Message) error {
	if relay != nil {
		tx.AfterCommit(func() { relay.Published(id, messages) })
		return nil
	}
	if err := tx.NotifyOutbox(ctx, id); err != nil {
		return fmt.Errorf("notify the engines of row %d of the outbox: %w", id, err)
	}
	return nil
}

// Append writes the messages in the caller's transaction and returns the id of their row. After the
// commit, Relay.Published publishes them at once; without it a sweep does within seconds.
func Append(ctx context.Context, tx *store.Tx, messages []Message) (int64, error) {
	return appendRow(ctx, tx, nil, messages)
}

func appendRow(ctx context.Context, tx *store.Tx, relay Publishing, messages []Message) (int64, error) {
	p := tx.Pipeline()
	handle := AppendTo(tx, p, relay, messages)
	if err := p.Send(ctx); err != nil {
		return 0, fmt.Errorf("append %d messages to the outbox: %w", len(messages), err)
	}
	return handle.ID(), nil
}

// Handle is the row of appended messages. Its id is known once the pipeline was sent.
type Handle struct{ ids *store.Result[int64] }

// ID is the row's id, 0 before the pipeline was sent.
func (h *Handle) ID() int64 {
	if rows := h.ids.Rows(); len(rows) == 1 {
		return rows[0]
	}
	return 0
}

// AppendTo is Append as one more statement of the transaction's pipeline. It also deletes rows that
// the relay has published; relay may be nil.
func AppendTo(tx *store.Tx, p *store.Pipeline, relay Publishing, messages []Message) *Handle {
	c := columnsOf(messages)
	published := Published(tx, relay)
	return &Handle{ids: store.Many[int64](p, store.AppendOutbox, c.ids, c.exchanges, c.keys, c.types, c.bodies,
		c.traces, published)}
}

// deleting is a relay whose published rows other transactions may delete.
type deleting interface {
	takePublished() []int64
	deleted(ids []int64, committed bool)
}

// Published returns the rows that the relay has published, for the transaction to delete. If it
// does not commit, the relay deletes them later.
func Published(tx *store.Tx, relay Publishing) []int64 {
	from, ok := relay.(deleting)
	if !ok {
		return []int64{}
	}
	ids := from.takePublished()
	if len(ids) > 0 {
		tx.AfterEnd(func(committed bool) { from.deleted(ids, committed) })
	}
	return ids
}

// columns are messages as the parallel arrays of a row.
type columns struct {
	ids, exchanges, keys, types, traces []string
	bodies                              [][]byte
}

func columnsOf(messages []Message) columns {
	n := len(messages)
	c := columns{
		ids: make([]string, n), exchanges: make([]string, n), keys: make([]string, n),
		types: make([]string, n), traces: make([]string, n), bodies: make([][]byte, n),
	}
	for i, m := range messages {
		c.ids[i], c.exchanges[i], c.keys[i], c.types[i], c.traces[i], c.bodies[i] = m.ID, m.Exchange, m.RoutingKey,
			m.Type, m.Trace, m.Body
		if m.Properties != nil {
			c.traces[i] = propertiesPrefix + base64.StdEncoding.EncodeToString(m.Properties.Encode())
		}
	}
	return c
}

// propertiesPrefix marks encoded properties in place of a trace.
const propertiesPrefix = "properties="

// messagesOf are the messages of a row.
func messagesOf(row *store.ClaimOutboxRow) ([]Message, error) {
	messages := make([]Message, len(row.MessageIds))
	for i := range messages {
		m := Message{
			ID: row.MessageIds[i], Exchange: row.Exchanges[i], RoutingKey: row.RoutingKeys[i],
			Type: row.MessageTypes[i], Body: row.Bodies[i], Trace: row.Traces[i],
		}
		if text, ok := strings.CutPrefix(m.Trace, propertiesPrefix); ok {
			raw, err := base64.StdEncoding.DecodeString(text)
			if err == nil {
				m.Properties, err = broker.DecodeProperties(raw)
			}
			if err != nil {
				return nil, fmt.Errorf("read message %s of outbox row %d: %w", m.ID, row.ID, err)
			}
			m.Trace = ""
		}
		messages[i] = m
	}
	return messages, nil
}

// headerPrefix is the prefix of the headers that a trace may name.
const headerPrefix = "x-attune-"

// HeaderTrace is a trace that the relay publishes as a header of the message. The name must begin
// with x-attune-, or be traceparent; a trace without it stays in the table only.
func HeaderTrace(name, value string) string { return name + "=" + value }

// headers returns the header of a trace, or nil.
func headers(text string) broker.Table {
	name, value, ok := strings.Cut(text, "=")
	if !ok || (name != tracing.Header && !strings.HasPrefix(name, headerPrefix)) {
		return nil
	}
	return broker.Table{name: value}
}
