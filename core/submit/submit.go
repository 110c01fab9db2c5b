package submit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/tracing"
)

// source is the source_service of the messages.
const source = "attune-executor"

const (
	// messagesPerRow bounds one outbox row, so that a relay publishes a large batch in parts.
	messagesPerRow = 500
	// maxConfigInMessage bounds the parameters in a request's message. The engine reads them from
	// the row.
	maxConfigInMessage = 1 << 20
	// hintRefs bounds the refs among which the nearest one is searched.
	hintRefs = 5000
)

// Relay publishes committed messages; *outbox.Relay is one.
type Relay = outbox.Publishing

// Submitter requests executions. It is safe for concurrent use.
type Submitter struct {
	store *store.Store
	relay Relay
	keys  secret.Keyring
	known *known
}

// New returns a Submitter. Without a relay the sweep of a running engine publishes the messages within seconds.
func New(st *store.Store, relay Relay) *Submitter {
	return &Submitter{store: st, relay: relay, known: &known{actions: make(map[string]Action)}}
}

// WithKeyring returns a Submitter that can encrypt secret parameters. Without a key it refuses them.
func (s *Submitter) WithKeyring(keys secret.Keyring) *Submitter {
	with := *s
	with.keys = keys
	return &with
}

// Request is one execution to request.
type Request struct {
	// ActionRef names the action, such as core.echo.
	ActionRef string
	// Params is the parameters as a JSON object; empty, null and {} mean none.
	Params json.RawMessage
	// Priority is the lane in which it waits.
	Priority Priority
	// Options are the additional settings of the HTTP API; nil for none.
	Options *Options
	// Key makes Request repeatable; nil for none.
	Key *Key
}

// Options are the settings of a client of the HTTP API for its execution. Unset ones come from the action;
// artifact retention without a setting keeps five versions.
type Options struct {
	// Executor is the identity that the execution runs as. A missing identity counts as none.
	Executor *int64
	// Parent is the execution that requests it.
	Parent *int64
	// PermissionSetRefs are the permissions of its token; nil means the action's.
	PermissionSetRefs []string
	// EnvVars is kept with the execution.
	EnvVars map[string]json.RawMessage

	ArtifactRetentionPolicy string
	ArtifactRetentionLimit  int

	placement.Own
}

// Requested is a stored request.
type Requested struct {
	ID        int64     // of the execution
	ActionRef string    // as requested
	Created   time.Time // by the clock of the database
	OutboxID  int64     // of the outbox row of its message
	// Repeated reports that an earlier request with the key has created it. Then only ID and ActionRef are known.
	Repeated bool
}

// Priority is the lane in which an execution waits, the value of execution.priority.
type Priority int16

// The lanes. Within one the executions start in the order of their requests.
const (
	PriorityLow    Priority = -1
	PriorityNormal Priority = 0
	PriorityHigh   Priority = 1
)

// ParsePriority reads the name of a lane.
func ParsePriority(name string) (Priority, error) {
	switch name {
	case "high":
		return PriorityHigh, nil
	case "normal":
		return PriorityNormal, nil
	case "low":
		return PriorityLow, nil
	}
	return PriorityNormal, fmt.Errorf("priority %q is unknown: use high, normal or low", name)
}

// ErrPriority reports an unknown priority.
var ErrPriority = errors.New("the priority must be high, normal or low")

// ErrParams reports parameters that are not a JSON object.
var ErrParams = errors.New("the parameters must be a JSON object")

// UnknownActionError reports that no action has the ref.
type UnknownActionError struct {
	Ref     string
	Nearest string // empty without a similar one
}

// Error names the ref and the nearest one.
func (e *UnknownActionError) Error() string {
	return unknownText("action", e.Ref, e.Nearest)
}

func unknownText(kind, ref, nearest string) string {
	text := fmt.Sprintf("there is no %s %s", kind, ref)
	if nearest != "" {
		text += "; the nearest is " + nearest
	}
	return text
}

// Request requests one execution.
func (s *Submitter) Request(ctx context.Context, request Request) (Requested, error) {
	var list []Requested
	create := func() (err error) {
		list, err = s.RequestMany(ctx, []Request{request})
		return err
	}
	if request.Key == nil {
		if err := create(); err != nil {
			return Requested{}, err
		}
		return list[0], nil
	}
	earlier, err := s.once(ctx, request.Key, create)
	if err != nil {
		return Requested{}, fmt.Errorf("request %s: %w", request.ActionRef, err)
	}
	if earlier != 0 {
		return Requested{ID: earlier, ActionRef: request.ActionRef, Repeated: true}, nil
	}
	return list[0], nil
}

// RequestMany requests many executions in one transaction: all or none. The result is in the order
// of the requests.
func (s *Submitter) RequestMany(ctx context.Context, requests []Request) ([]Requested, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	configs, err := configsOf(requests)
	if err != nil {
		return nil, err
	}
	for _, request := range requests {
		if request.Priority < PriorityLow || request.Priority > PriorityHigh {
			return nil, fmt.Errorf("request %s: %w", request.ActionRef, ErrPriority)
		}
	}
	if actions, ok := s.known.of(requests); ok {
		done, err := s.request(ctx, requests, slices.Clone(configs), actions)
		var invalid *InvalidParamsError
		if !errors.Is(err, errStale) && !errors.As(err, &invalid) && !errors.Is(err, ErrSealed) {
			return done, err
		}
	}
	for try := 1; ; try++ {
		actions, err := s.actions(ctx, requests)
		if err != nil {
			return nil, err
		}
		s.known.add(actions)
		done, err := s.request(ctx, requests, slices.Clone(configs), actions)
		if try == maxStale || !errors.Is(err, errStale) {
			return done, err
		}
	}
}

// maxStale bounds how often a request reads the actions again because they changed.
const maxStale = 10

// errStale reports that actions have changed since they were read.
var errStale = errors.New("the actions change faster than they can be read")

// request checks the requests against actions and stores them, in one round trip if they have neither
// secrets, keys nor a trace. It fails with errStale if an action has changed since it was read.
func (s *Submitter) request(ctx context.Context, requests []Request, configs []string,
	actions map[string]Action,
) (done []Requested, err error) {
	secrets, err := s.examine(requests, configs, actions)
	if err != nil {
		return nil, err
	}
	var parts []*part
	for first := 0; first < len(requests); first += messagesPerRow {
		last := min(first+messagesPerRow, len(requests))
		one, err := newPart(requests[first:last], configs[first:last], actions)
		if err != nil {
			return nil, err
		}
		parts = append(parts, one)
	}
	keyed := slices.ContainsFunc(requests, func(one Request) bool { return one.Key != nil })
	single := len(parts) == 1 && len(secrets) == 0 && !keyed && !tracing.From(ctx).Valid()
	stale := false
	err = s.store.Tx(ctx, "request executions", func(ctx context.Context, tx *store.Tx) error {
		done, stale = nil, false
		p := tx.Pipeline()
		for _, one := range parts {
			one.insert(tx, p, s.relay)
		}
		send := p.Send
		if single {
			send = p.Commit
		}
		if err := send(ctx); err != nil {
			return fmt.Errorf("insert %d executions: %w", len(requests), err)
		}
		for _, one := range parts {
			done = append(done, one.done()...)
		}
		switch stale = len(done) < len(requests); {
		case single:
			return nil
		case stale:
			return errStale
		}
		if err := insertSecrets(ctx, tx, secrets, done); err != nil {
			return err
		}
		ids := make([]int64, len(done))
		for i, one := range done {
			ids[i] = one.ID
			if err := requests[i].Key.take(ctx, tx, one.ID); err != nil {
				return err
			}
		}
		return recordTrace(ctx, tx, tracing.Execution, ids)
	})
	if err != nil {
		return nil, err
	}
	if stale {
		return nil, errStale
	}
	if s.relay != nil {
		for _, one := range parts {
			s.relay.Published(one.row(), one.messages)
		}
	}
	return done, nil
}

// recordTrace stores the position in its trace with which a client requests executions or events.
func recordTrace(ctx context.Context, tx *store.Tx, kind tracing.Kind, ids []int64) error {
	client := tracing.From(ctx)
	if !client.Valid() {
		return nil
	}
	if err := tx.AddTraceOrigins(ctx, string(kind), ids, client.String()); err != nil {
		return fmt.Errorf("record the trace of %d rows: %w", len(ids), err)
	}
	return nil
}

// Action is what a request needs to know of an action.
type Action struct {
	ID          int64
	Ref         string
	ParamSchema []byte

	permissionSets  []string // the defaults of an execution
	retentionPolicy string
	retentionLimit  int32
	epoch           int64 // the version of all actions when it was read
}

// Action looks up an action.
func (s *Submitter) Action(ctx context.Context, ref string) (Action, error) {
	actions, err := s.actions(ctx, []Request{{ActionRef: ref}})
	if err != nil {
		return Action{}, err
	}
	return actions[ref], nil
}

// actions looks up the action of every request.
func (s *Submitter) actions(ctx context.Context, requests []Request) (map[string]Action, error) {
	var refs []string
	for _, request := range requests {
		refs = append(refs, request.ActionRef)
	}
	slices.Sort(refs)
	refs = slices.Compact(refs)
	rows, err := s.store.ActionsByRef(ctx, refs)
	if err != nil {
		return nil, fmt.Errorf("look up %d actions: %w", len(refs), err)
	}
	actions := make(map[string]Action, len(rows))
	for _, row := range rows {
		actions[row.Ref] = Action{
			ID: row.ID, Ref: row.Ref, ParamSchema: row.ParamSchema, epoch: row.Epoch,
			permissionSets: row.PermissionSets, retentionPolicy: row.RetentionPolicy,
			retentionLimit: row.RetentionLimit,
		}
	}
	for _, ref := range refs {
		if _, ok := actions[ref]; !ok {
			return nil, s.unknown(ctx, ref)
		}
	}
	return actions, nil
}

func (s *Submitter) unknown(ctx context.Context, ref string) error {
	refs, err := s.store.ActionRefs(ctx, hintRefs)
	if err != nil {
		refs = nil // the hint is optional
	}
	near := phrase.Nearest(ref, refs)
	if _, name, ok := strings.Cut(ref, "."); near == "" || !ok {
		for _, known := range refs { // the same name without a pack, or in another one
			_, knownName, _ := strings.Cut(known, ".")
			if knownName == name || (!ok && knownName == ref) {
				near = known
				break
			}
		}
	}
	return &UnknownActionError{Ref: ref, Nearest: near}
}

// appendMessages appends messages to the outbox in parts. set receives the outbox row of each message.
func (s *Submitter) appendMessages(ctx context.Context, tx *store.Tx, messages []outbox.Message,
	set func(int, int64),
) error {
	i := 0
	for part := range slices.Chunk(messages, messagesPerRow) {
		row, err := outbox.Send(ctx, tx, s.relay, part)
		if err != nil {
			return err
		}
		for range part {
			set(i, row)
			i++
		}
	}
	return nil
}

// configsOf returns the parameters in compact form, empty for none.
func configsOf(requests []Request) ([]string, error) {
	configs := make([]string, len(requests))
	for i, request := range requests {
		text := bytes.TrimSpace(request.Params)
		if len(text) == 0 || string(text) == "null" {
			continue
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil || compact.Bytes()[0] != '{' {
			return nil, fmt.Errorf("request %s: %w", request.ActionRef, ErrParams)
		}
		if err := jsonvalue.Check("parameters", compact.Bytes()); err != nil {
			return nil, fmt.Errorf("request %s: %w", request.ActionRef, err)
		}
		if compact.String() != "{}" {
			configs[i] = compact.String()
		}
	}
	return configs, nil
}
