package handback

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/advancement"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

const (
	// replicaSilent is the age of the last report from which a replica counts as stopped.
	replicaSilent = 30 * time.Second

	page        = 1000      // executions read, and messages appended, at a time
	maxConfig   = 256 << 10 // parameters in a message; the row has them anyway
	source      = "attune-executor"
	manyWorkers = 100_000
)

// Deps are the dependencies of HandBack.
type Deps struct {
	Store *store.Store
	// Broker is started and declares no routes for dead letters itself
	// (broker.Config.NoDeadLetters).
	Broker *broker.Broker
	// Management deletes the policy that catches dead letters; nil keeps it.
	Management *broker.Management
	// Keys decrypt and encrypt the secrets of the created children.
	Keys secret.Keyring
}

// Item is a setting that the other executor does not know.
type Item struct {
	Kind  string   `json:"kind"`
	Count int64    `json:"count"`
	IDs   []int64  `json:"ids"` // the first 20
	Notes []string `json:"notes,omitempty"`
	Then  string   `json:"then"` // the effect of the hand-back
}

// Replica is a running replica of this engine.
type Replica struct {
	ID   string        `json:"id"`
	Host string        `json:"host"`
	PID  int32         `json:"pid"`
	Age  time.Duration `json:"-"` // since its last report
}

// Survey is the state before a hand-back.
type Survey struct {
	Replicas    []Replica `json:"replicas"`
	Unpublished int64     `json:"unpublished_messages"`
	Items       []Item    `json:"not_understood"`
}

// then describes the effect on each kind of item.
var then = map[string]string{
	"paused queues":      "their executions start",
	"limit overrides":    "the limit of the policy applies",
	"rates and quotas":   "these policies are deleted, because they would be read as concurrency limits",
	"shared limits":      "each action gets the limit for itself",
	"adaptive limits":    "the threshold of the policy applies",
	"queue bounds":       "length and time of waiting are not bounded by these policies",
	"priorities":         "waiting executions keep their present order; priorities have no effect afterwards",
	"pending retries":    "they start at once instead of at the noted time",
	"cancel requests":    "these executions run on unless they are cancelled again",
	"paused workflows":   "their executions go on; a task that became due meanwhile never starts: resume them before",
	"parallel tasks":     "the tasks within end; their workflow ends then, without what follows: let them end before",
	"workflow deadlines": "they may run for any time",
	"strict workflows":   "errors in expressions no longer fail tasks, and the first call in a condition decides",
	"action retries":     "their executions are not repeated",
	"action timeouts":    "their executions may run and wait as long as every other",
	"inquiries":          "an answer becomes the result of the noted action's execution",
	"dead letters":       "these messages and the ledger are deleted; requeue or discard them before",
	"draining workers":   "they are given work again; cordon them to prevent it",
}

// RunningError refuses while replicas run: they would continue to decide.
type RunningError struct{ Replicas []Replica }

// Error says what to stop.
func (e *RunningError) Error() string {
	names := make([]string, len(e.Replicas))
	for i, r := range e.Replicas {
		names[i] = fmt.Sprintf("%s on %s, process %d, seen %s ago", r.ID, r.Host, r.PID, r.Age.Round(time.Second))
	}
	return fmt.Sprintf(
		"%d replicas of attune-executor run (%s): stop them with SIGTERM; one that was killed counts for %s",
		len(e.Replicas), strings.Join(names, "; "), replicaSilent)
}

// Read lists the findings for a hand-back. It changes nothing.
func Read(ctx context.Context, st *store.Store) (*Survey, error) {
	s := &Survey{Replicas: []Replica{}, Items: []Item{}}
	replicas, err := st.LiveReplicas(ctx, replicaSilent.Seconds())
	if err != nil {
		return nil, fmt.Errorf("list the replicas: %w", err)
	}
	for _, r := range replicas {
		s.Replicas = append(s.Replicas, Replica{
			ID: r.ID.String()[:8], Host: r.Host, PID: r.Pid, Age: time.Duration(r.Age * float64(time.Second)),
		})
	}
	backlog, err := st.OutboxBacklog(ctx)
	if err != nil {
		return nil, fmt.Errorf("count the unpublished messages: %w", err)
	}
	s.Unpublished = backlog.Messages
	items, err := st.NotUnderstood(ctx)
	if err != nil {
		return nil, fmt.Errorf("list what the other executor does not understand: %w", err)
	}
	for _, one := range items {
		item := Item{Kind: one.Kind, Count: one.N, IDs: one.Ids, Then: then[one.Kind]}
		if slices.ContainsFunc(one.Notes, func(note string) bool { return note != "" }) {
			item.Notes = one.Notes
		}
		s.Items = append(s.Items, item)
	}
	return s, nil
}

// Result is the result of HandBack.
type Result struct {
	Active    int `json:"active"`    // executions that hold a slot
	Queued    int `json:"queued"`    // executions that wait in a queue
	Made      int `json:"made"`      // children of lists that were missing
	Requested int `json:"requested"` // executions that a message wakes
	Completed int `json:"completed"` // ended workflow children that a message reports
	Published int `json:"published"` // all messages, including those of the outbox
	// Undeliverable counts dispatches to workers without a queue.
	Undeliverable int `json:"undeliverable"`
	// Split counts batch messages that were replaced by single messages.
	Split int `json:"split"`
}

// HandBack writes the admission tables in the other executor's format and publishes the messages
// that wake it. It refuses with a *RunningError while replicas run. It refuses with an
// *UnstartedError while a live worker holds unstarted executions, because it may hold them in a
// batch message that the other executor's workers cannot read. If the broker does not answer it
// changes nothing. After a later failure replicas can continue on the database, and HandBack may be
// repeated.
func HandBack(ctx context.Context, deps Deps) (*Result, error) {
	survey, err := Read(ctx, deps.Store)
	if err != nil {
		return nil, err
	}
	if len(survey.Replicas) > 0 {
		return nil, &RunningError{survey.Replicas}
	}
	if err := deps.Broker.DeclareExecutor(ctx); err != nil {
		return nil, fmt.Errorf("declare the queues of the other executor: nothing was changed: %w", err)
	}
	if err := awaitStarts(ctx, deps); err != nil {
		return nil, err
	}
	result := new(Result)
	err = deps.Store.Tx(ctx, "hand back", func(ctx context.Context, tx *store.Tx) error {
		*result = Result{}
		return write(ctx, tx, deps.Keys, result)
	})
	if err != nil {
		return nil, fmt.Errorf("write the admission tables: %w", err)
	}
	drained, err := outbox.Drain(ctx, deps.Store, deps.Broker.Publisher())
	result.Published, result.Undeliverable = drained.Published, drained.Undeliverable
	if err != nil {
		return result, fmt.Errorf("publish what wakes the other executor: the schema was not changed, repeat it: %w",
			err)
	}
	if err := splitBatches(ctx, deps, result); err != nil {
		return result,
			fmt.Errorf("split messages that hold several executions: the schema was not changed, repeat it: %w", err)
	}
	if err := dropRoutes(ctx, deps); err != nil {
		return result, fmt.Errorf("take away the routes of dead letters: the schema was not changed, repeat it: %w",
			err)
	}
	return result, nil
}

// write is the transaction: the entries, the counters, and the messages.
func write(ctx context.Context, tx *store.Tx, keys secret.Keyring, result *Result) error {
	if err := tx.LockForHandBack(ctx); err != nil {
		return fmt.Errorf("lock the queues: %w", err)
	}
	if err := makeChildren(ctx, tx, keys, result); err != nil {
		return err
	}
	p := &plan{queues: map[queue][]entry{}, most: map[int64]int32{}, lists: map[list]*window{}}
	rules := map[int64]rule{}
	now := time.Now()
	for after := int64(0); ; {
		rows, err := tx.LiveExecutions(ctx, after, page)
		if err != nil {
			return fmt.Errorf("read live executions: %w", err)
		}
		if err := readRules(ctx, tx, rows, rules); err != nil {
			return err
		}
		if err := p.readLists(ctx, tx, rows); err != nil {
			return err
		}
		for _, row := range rows {
			p.add(row, rules[row.Action], now)
			after = row.ID
		}
		if len(rows) < page {
			break
		}
	}
	p.finish()
	if err := p.write(ctx, tx, result); err != nil {
		return err
	}
	return appendMessages(ctx, tx, p.wake, result)
}

// makeChildren creates the missing children of lists: the other executor creates all of them when a
// list starts, and never later.
func makeChildren(ctx context.Context, tx *store.Tx, keys secret.Keyring, result *Result) error {
	ids, err := tx.UnmadeLists(ctx)
	if err != nil {
		return fmt.Errorf("find lists without all children: %w", err)
	}
	for _, id := range ids {
		made, err := advancement.Unroll(ctx, tx.Queries, advancement.Config{Keys: keys}, id)
		if err != nil {
			return err
		}
		result.Made += made
	}
	return nil
}

// readLists reads the concurrency limits of a page's lists.
func (p *plan) readLists(ctx context.Context, tx *store.Tx, rows []store.LiveExecutionsRow) error {
	var parents []int64
	var tasks []string
	for _, row := range rows {
		one := list{row.Parent, row.List}
		if _, known := p.lists[one]; row.List != "" && !known {
			p.lists[one] = nil // not a child of a workflow, unless a row says so
			parents, tasks = append(parents, row.Parent), append(tasks, row.List)
		}
	}
	if len(parents) == 0 {
		return nil
	}
	windows, err := tx.ListWindows(ctx, parents, tasks)
	if err != nil {
		return fmt.Errorf("read how many children of %d lists run at once: %w", len(parents), err)
	}
	for _, one := range windows {
		p.lists[list{one.Parent, one.Task}] = &window{most: max(int(one.Most), 1)}
	}
	return nil
}

// readRules reads the rules of unknown actions.
func readRules(ctx context.Context, tx *store.Tx, rows []store.LiveExecutionsRow, rules map[int64]rule) error {
	var missing []int64
	for _, row := range rows {
		if _, known := rules[row.Action]; !known && row.Action != 0 {
			rules[row.Action] = rule{}
			missing = append(missing, row.Action)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	actions, err := tx.ReadActionRules(ctx, missing, []string{})
	if err != nil {
		return fmt.Errorf("read %d actions: %w", len(missing), err)
	}
	var packs []int64
	for _, action := range actions {
		packs = append(packs, action.Pack)
	}
	policies, err := tx.ReadPolicies(ctx, missing, packs)
	if err != nil {
		return fmt.Errorf("read the policies of %d actions: %w", len(missing), err)
	}
	for _, action := range actions {
		rules[action.ID] = ruleOf(action, policies)
	}
	return nil
}

func (p *plan) write(ctx context.Context, tx *store.Tx, result *Result) error {
	if err := tx.ClearEntries(ctx); err != nil {
		return fmt.Errorf("clear the entries: %w", err)
	}
	var actions []int64
	var keys []string
	var maxima []int32
	for q := range p.queues {
		actions, keys, maxima = append(actions, q.action), append(keys, q.key), append(maxima, p.most[q.action])
	}
	states, err := tx.UpsertStates(ctx, actions, keys, maxima)
	if err != nil {
		return fmt.Errorf("write %d queues: %w", len(actions), err)
	}
	slices.SortFunc(states, func(a, b store.UpsertStatesRow) int { return cmp.Compare(a.ID, b.ID) })
	var rows store.InsertEntriesParams
	for _, state := range states {
		for i, one := range p.queues[queue{state.ActionID, state.GroupKey}] {
			rows.States, rows.Executions = append(rows.States, state.ID), append(rows.Executions, one.execution)
			rows.Active, rows.Places = append(rows.Active, one.active), append(rows.Places, int64(i+1))
			rows.Enqueued, rows.Activated = append(rows.Enqueued, one.enqueued), append(rows.Activated, one.activated)
			if one.active {
				result.Active++
			} else {
				result.Queued++
			}
		}
	}
	if err := tx.InsertEntries(ctx, rows); err != nil {
		return fmt.Errorf("write %d entries: %w", len(rows.States), err)
	}
	actions, maxima = nil, nil
	for action, most := range p.most {
		actions, maxima = append(actions, action), append(maxima, most)
	}
	if err := tx.FinishStates(ctx, actions, maxima); err != nil {
		return fmt.Errorf("write the limits of %d actions: %w", len(actions), err)
	}
	if err := tx.WriteQueueStats(ctx); err != nil {
		return fmt.Errorf("write queue_stats: %w", err)
	}
	return nil
}

// appendMessages puts the messages that wake the other executor into the outbox.
func appendMessages(ctx context.Context, tx *store.Tx, wake []int64, result *Result) error {
	at := time.Now()
	ends, err := tx.UnsettledEnds(ctx)
	if err != nil {
		return fmt.Errorf("read ended children of workflows: %w", err)
	}
	for part := range slices.Chunk(ends, page) {
		messages := make([]outbox.Message, 0, len(part))
		for _, e := range part {
			m, err := encode(message.TypeExecutionCompleted, message.ExecutionCompleted{
				ExecutionID: e.ID, ActionID: e.Action, ActionRef: e.ActionRef, Status: e.Status,
				Result: small(e.Result), CompletedAt: at.UTC(),
			}, at)
			if err != nil {
				return err
			}
			messages = append(messages, m)
		}
		if _, err := outbox.Append(ctx, tx, messages); err != nil {
			return err
		}
		result.Completed += len(messages)
	}
	for part := range slices.Chunk(wake, page) {
		rows, err := tx.ReadRequests(ctx, part)
		if err != nil {
			return fmt.Errorf("read %d executions: %w", len(part), err)
		}
		place := make(map[int64]int, len(part))
		for i, id := range part {
			place[id] = i
		}
		slices.SortFunc(rows, func(a, b store.ReadRequestsRow) int { return cmp.Compare(place[a.ID], place[b.ID]) })
		messages := make([]outbox.Message, 0, len(rows))
		for _, e := range rows {
			m, err := encode(message.TypeExecutionRequested, message.ExecutionRequested{
				ExecutionID: e.ID, ActionID: e.Action, ActionRef: e.ActionRef, ParentID: e.Parent,
				EnforcementID: e.Enforcement,
				Config:        small(e.Config),
			}, at)
			if err != nil {
				return err
			}
			messages = append(messages, m)
		}
		if _, err := outbox.Append(ctx, tx, messages); err != nil {
			return err
		}
		result.Requested += len(messages)
	}
	return nil
}

func small(document []byte) json.RawMessage {
	if len(document) > maxConfig {
		return nil
	}
	return document
}

func encode[P any](kind string, payload P, at time.Time) (outbox.Message, error) {
	envelope := message.New(kind, payload, at, source)
	body, err := envelope.Encode()
	if err != nil {
		return outbox.Message{}, err
	}
	route, _ := message.RouteOf(kind)
	return outbox.Message{ID: envelope.MessageID, Exchange: route.Exchange, RoutingKey: route.Key, Type: kind,
		Body: body}, nil
}

// dropRoutes deletes the routes of dead letters to the dead-letter queue: the other executor ends
// their executions without releasing the slots.
func dropRoutes(ctx context.Context, deps Deps) error {
	workers, err := deps.Store.LetterRouteWorkers(ctx, manyWorkers)
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	keys := message.DeadLetterKeys()
	for _, id := range workers {
		keys = append(keys, message.DispatchKey(id), message.CancelKey(id))
	}
	bindings := make([]broker.Binding, len(keys))
	for i, key := range keys {
		bindings[i] = broker.Binding{Source: message.ExchangeDeadLetter, Queue: message.QueueDeadLetter,
			RoutingKey: key}
	}
	if err := deps.Broker.UnbindQueues(ctx, bindings); err != nil {
		return err
	}
	if deps.Management != nil {
		// Without the right to delete it the policy stays, and names a deleted exchange.
		_ = deps.Management.DeletePolicy(ctx, broker.PolicyUnrouted)
	}
	return deps.Broker.DeleteExchange(ctx, broker.ExchangeUnrouted)
}
