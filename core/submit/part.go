package submit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/store"
)

// part is requests whose messages fit one row of the outbox.
type part struct {
	requests []Request
	columns  store.RequestExecutionsParams
	bodies   []body
	messages []outbox.Message // their bodies are known after the insert
	rows     *store.Result[store.RequestExecutionsRow]
}

func newPart(requests []Request, configs []string, actions map[string]Action) (*part, error) {
	p := &part{requests: requests, columns: store.RequestExecutionsParams{Configs: configs}}
	for i, request := range requests {
		action := actions[request.ActionRef]
		p.columns.Epoch = action.epoch
		if err := p.addRow(request, action); err != nil {
			return nil, fmt.Errorf("request %s: %w", request.ActionRef, err)
		}
		sent, text, err := outline(action.ID, request, configs[i])
		if err != nil {
			return nil, err
		}
		p.messages, p.bodies = append(p.messages, sent), append(p.bodies, text)
	}
	return p, nil
}

// addRow adds the columns of a row, besides its parameters.
func (p *part) addRow(request Request, action Action) error {
	c := &p.columns
	options := Options{PermissionSetRefs: action.permissionSets}
	if request.Options != nil {
		options = *request.Options
		if options.PermissionSetRefs == nil {
			options.PermissionSetRefs = action.permissionSets
		}
		options.ArtifactRetentionPolicy = cmp.Or(options.ArtifactRetentionPolicy, action.retentionPolicy)
		options.ArtifactRetentionLimit = cmp.Or(options.ArtifactRetentionLimit, int(action.retentionLimit))
	}
	env := []byte{}
	if len(options.EnvVars) > 0 {
		var err error
		if env, err = json.Marshal(options.EnvVars); err != nil {
			return fmt.Errorf("encode env_vars: %w", err)
		}
	}
	for name, raw := range map[string][]byte{
		"env_vars": env, "worker_selector": options.Selector, "worker_tolerations": options.Tolerations,
		"worker_affinity": options.Affinity,
	} {
		if len(raw) == 0 {
			continue
		}
		if err := jsonvalue.Check(name, raw); err != nil {
			return err
		}
	}
	c.Actions, c.Refs = append(c.Actions, action.ID), append(c.Refs, request.ActionRef)
	c.Priorities = append(c.Priorities, int16(request.Priority))
	c.Executors, c.Parents = append(c.Executors, orZero(options.Executor)), append(c.Parents, orZero(options.Parent))
	c.PermissionSets = append(c.PermissionSets, arrayText(options.PermissionSetRefs))
	c.EnvVars = append(c.EnvVars, string(env))
	c.RetentionPolicies = append(c.RetentionPolicies, options.ArtifactRetentionPolicy)
	c.RetentionLimits = append(c.RetentionLimits, int32(options.ArtifactRetentionLimit))
	c.Selectors = append(c.Selectors, string(options.Selector))
	c.Tolerations = append(c.Tolerations, string(options.Tolerations))
	c.Affinities = append(c.Affinities, string(options.Affinity))
	return nil
}

func orZero(id *int64) int64 {
	if id == nil {
		return 0
	}
	return *id
}

// arrayText is an array of texts as PostgreSQL reads it.
func arrayText(list []string) string {
	quoted := make([]string, len(list))
	for i, text := range list {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

// insert queues the statement that stores the part.
func (p *part) insert(tx *store.Tx, pipeline *store.Pipeline, relay Relay) {
	c, n := p.columns, len(p.requests)
	ids, heads, middles, tails := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, one := range p.bodies {
		ids[i], heads[i], middles[i], tails[i] = p.messages[i].ID, one.head, one.middle, one.tail
	}
	same := func(text string) []string { return slices.Repeat([]string{text}, n) }
	p.rows = store.Many[store.RequestExecutionsRow](pipeline, store.RequestExecutions,
		c.Actions, c.Refs, c.Configs, c.Priorities, c.Executors, c.Parents, c.PermissionSets, c.EnvVars,
		c.RetentionPolicies, c.RetentionLimits, c.Selectors, c.Tolerations, c.Affinities, c.Epoch,
		outbox.Published(tx, relay), ids, same(message.ExchangeExecutions), same(message.KeyExecutionRequested),
		same(message.TypeExecutionRequested), same(""), heads, middles, tails, relay == nil)
}

// done returns the stored requests, none if an action had changed, and completes the messages.
func (p *part) done() []Requested {
	rows := p.rows.Rows()
	slices.SortFunc(rows, func(a, b store.RequestExecutionsRow) int { return cmp.Compare(a.ID, b.ID) })
	done := make([]Requested, len(rows))
	for i, row := range rows {
		done[i] = Requested{
			ID: row.ID, ActionRef: p.requests[i].ActionRef, Created: row.Created, OutboxID: row.OutboxID,
		}
		p.messages[i].Body = p.bodies[i].of(row.ID, row.Created)
	}
	return done
}

// row is the part's row of the outbox.
func (p *part) row() int64 { return p.rows.Rows()[0].OutboxID }

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
	payload := message.ExecutionRequested{ActionID: &action, ActionRef: request.ActionRef}
	if request.Options != nil {
		payload.ParentID = request.Options.Parent
	}
	if config != "" {
		payload.Config = jsonvalue.Copy(json.RawMessage(config), maxConfigInMessage)
	}
	var noTime time.Time
	whole, err := outbox.Encode(message.TypeExecutionRequested, payload, noTime, source)
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
