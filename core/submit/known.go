package submit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// maxKnown bounds the cached actions.
const maxKnown = 10_000

// known caches actions. The statement that requests executions verifies them.
type known struct {
	mu      sync.Mutex
	actions map[string]Action
}

func (k *known) add(actions map[string]Action) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.actions) > maxKnown {
		clear(k.actions)
	}
	maps.Copy(k.actions, actions)
}

// of returns the actions of the requests, or false if one of them is not cached.
func (k *known) of(requests []Request) (map[string]Action, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	actions := make(map[string]Action, 1)
	for _, request := range requests {
		action, ok := k.actions[request.ActionRef]
		if !ok {
			return nil, false
		}
		actions[request.ActionRef] = action
	}
	return actions, true
}

// requestKnown requests executions of cached actions in one round trip. It returns nil if an action is not
// cached or has changed, parameters violate the cached schema, or the requests exceed one outbox row or have
// secret parameters.
func (s *Submitter) requestKnown(ctx context.Context, requests []Request, configs []string) ([]Requested, error) {
	if len(requests) > messagesPerRow {
		return nil, nil
	}
	actions, ok := s.known.of(requests)
	if !ok {
		return nil, nil
	}
	secrets, err := s.examine(requests, slices.Clone(configs), actions)
	if err != nil || len(secrets) > 0 {
		return nil, nil //nolint:nilerr // the caller checks the present action
	}
	rows, err := rowsOf(requests, configs, actions)
	if err != nil {
		return nil, err
	}
	bodies := make([]body, len(requests))
	sent := make([]outbox.Message, len(requests))
	for i, request := range requests {
		if sent[i], bodies[i], err = outline(rows.Actions[i], request, configs[i]); err != nil {
			return nil, err
		}
	}
	var done []Requested
	err = s.store.Tx(ctx, "request executions", func(ctx context.Context, tx *store.Tx) error {
		p := tx.Pipeline()
		inserted := insertKnown(tx, p, s.relay, rows, actions, sent, bodies)
		if err := p.Commit(ctx); err != nil {
			return fmt.Errorf("insert %d executions: %w", len(requests), err)
		}
		done = nil
		for i, row := range inserted.Rows() {
			done = append(done,
				Requested{ID: row.ID, ActionRef: requests[i].ActionRef, Created: row.Created, OutboxID: row.OutboxID})
			sent[i].Body = bodies[i].of(row.ID, row.Created)
		}
		return nil
	})
	if err != nil || done == nil {
		return nil, err
	}
	if s.relay != nil {
		s.relay.Published(done[0].OutboxID, sent)
	}
	return done, nil
}

func insertKnown(
	tx *store.Tx, p *store.Pipeline, relay Relay, rows store.InsertRequestedExecutionsParams,
	actions map[string]Action, sent []outbox.Message, bodies []body,
) *store.Result[store.RequestExecutionsRow] {
	n := len(bodies)
	digests, ids := make([]string, n), make([]string, n)
	heads, middles, tails := make([]string, n), make([]string, n), make([]string, n)
	for i, one := range bodies {
		digests[i], ids[i] = actions[rows.Refs[i]].digest, sent[i].ID
		heads[i], middles[i], tails[i] = one.head, one.middle, one.tail
	}
	return store.Many[store.RequestExecutionsRow](p, store.RequestExecutions,
		relay == nil, rows.Actions, rows.Refs, digests, rows.Configs, rows.Priorities, rows.Options,
		outbox.Published(tx, relay), ids,
		message.ExchangeExecutions, message.KeyExecutionRequested, message.TypeExecutionRequested, heads, middles,
		tails)
}

// rowsOf returns the columns of the rows of requests.
func rowsOf(requests []Request, configs []string,
	actions map[string]Action,
) (store.InsertRequestedExecutionsParams, error) {
	rows := store.InsertRequestedExecutionsParams{Configs: configs}
	for _, request := range requests {
		rows.Actions = append(rows.Actions, actions[request.ActionRef].ID)
		rows.Refs = append(rows.Refs, request.ActionRef)
		rows.Priorities = append(rows.Priorities, int16(request.Priority))
		options, err := request.Options.text()
		if err != nil {
			return rows, fmt.Errorf("encode the options of a request of %s: %w", request.ActionRef, err)
		}
		if err := jsonvalue.Check("options", []byte(options)); err != nil {
			return rows, fmt.Errorf("request %s: %w", request.ActionRef, err)
		}
		rows.Options = append(rows.Options, options)
	}
	return rows, nil
}

// body is the text of a message without its time and the id of its row, which the database sets.
type body struct{ head, middle, tail string }

// rowTime is the database's format of the time in a body.
const rowTime = "2006-01-02T15:04:05.000000Z"

func (b body) of(id int64, created time.Time) []byte {
	return []byte(b.head + created.UTC().Format(rowTime) + b.middle + strconv.FormatInt(id, 10) + b.tail)
}

var errOutline = errors.New("the message of a request has no place for its time and id")

// outline returns the message of a request without its body, and the body's parts.
func outline(action int64, request Request, config string) (outbox.Message, body, error) {
	var noTime time.Time
	whole, err := requestedMessage(store.InsertRequestedExecutionsRow{Created: noTime}, action, request, config)
	if err != nil {
		return outbox.Message{}, body{}, err
	}
	// Both precede all text of the caller.
	head, rest, timed := bytes.Cut(whole.Body, []byte(`"timestamp":"`+noTime.Format(time.RFC3339Nano)+`"`))
	middle, tail, numbered := bytes.Cut(rest, []byte(`"execution_id":0,`))
	if !timed || !numbered {
		return outbox.Message{}, body{}, errOutline
	}
	whole.Body = nil
	parts := body{
		head: string(head) + `"timestamp":"`, middle: `"` + string(middle) + `"execution_id":`,
		tail: "," + string(tail),
	}
	return whole, parts, nil
}
