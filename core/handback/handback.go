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
	"github.com/attune-go/attune/core/deadletter"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

const (
	// replicaSilent is the age of the last report at which a replica counts as stopped.
	replicaSilent = 30 * time.Second

	page        = 1000      // executions read, and messages appended, at a time
	maxConfig   = 256 << 10 // parameters in a message; the row has them anyway
	source      = "attune-executor"
	manyWorkers = 100_000
)

// Deps are the dependencies of HandBack.
type Deps struct {
	Store *store.Store
	// Broker is started with broker.Config.NoDeadLetters, so that it declares no routes for dead letters.
	Broker *broker.Broker
	// Management deletes the policy that routes dead letters; nil keeps it.
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
	"pending retries":    "they start at once instead of at their due time",
	"cancel requests":    "these executions continue unless you cancel them again",
	"paused workflows":   "their executions continue; a task that became due meanwhile never starts: resume them before",
	"parallel tasks":     "their workflow ends after the parallel tasks, without later ones: let them end before",
	"workflow deadlines": "they may run for any time",
	"strict workflows":   "errors in expressions no longer fail tasks, and the first call in a condition decides",
	"action retries":     "their executions are not retried",
	"action timeouts":    "their executions may run and wait as long as every other",
	"inquiries":          "an answer becomes the result of the named action's execution",
	"dead letters":       "these messages and the ledger are deleted; requeue or discard them before",
	"draining workers":   "they get executions again; cordon them to prevent it",
}

// RunningError refuses while replicas run: they would continue to decide.
type RunningError struct{ Replicas []Replica }

// Error names the replicas to stop.
func (e *RunningError) Error() string {
	names := make([]string, len(e.Replicas))
	for i, r := range e.Replicas {
		names[i] = fmt.Sprintf("%s on %s, process %d, seen %s ago", r.ID, r.Host, r.PID, r.Age.Round(time.Second))
	}
	return fmt.Sprintf(
		"%s (%s): stop each with SIGTERM; a replica that was killed counts for %s",
		phrase.Plural(len(e.Replicas), "replica of attune-executor runs", "replicas of attune-executor run"),
		strings.Join(names, "; "), replicaSilent)
}

// Read returns the state before a hand-back. It changes nothing.
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
		return nil, fmt.Errorf("list the settings that the other executor does not know: %w", err)
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
	Active    int `json:"active"`    // executions with a slot
	Queued    int `json:"queued"`    // queued executions
	Made      int `json:"made"`      // created children of lists
	Requested int `json:"requested"` // execution.requested messages
	Completed int `json:"completed"` // execution.completed messages of workflow children
	Published int `json:"published"` // all messages, including those of the outbox
	// Undeliverable counts dispatches to workers without a queue.
	Undeliverable int `json:"undeliverable"`
	// Split counts the batch messages that HandBack replaced by single messages.
	Split int `json:"split"`
}

// HandBack writes the admission tables in the other executor's format and publishes its messages. It refuses
// with a *RunningError while replicas run. It refuses with an *UnstartedError while a live worker holds
// unstarted executions: their batch message may be unreadable for the other executor's workers. Without the
// broker it changes nothing. After a later failure replicas can continue on the database, and HandBack may be
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
	drained, err := outbox.Drain(ctx, deps.Store, deps.Broker.Publisher(), deadletter.Refused)
	result.Published, result.Undeliverable = drained.Published, drained.Undeliverable
	if err == nil && drained.Refused > 0 {
		err = fmt.Errorf("the broker refused %s, and what they hold waits for a decision again",
			phrase.Plural(drained.Refused, "message of a dead letter", "messages of dead letters"))
	}
	if err != nil {
		return result, fmt.Errorf("publish the messages: the schema was not changed, repeat it: %w", err)
	}
	if err := splitBatches(ctx, deps, result); err != nil {
		return result, fmt.Errorf("split batch messages: the schema was not changed, repeat it: %w", err)
	}
	if err := dropRoutes(ctx, deps); err != nil {
		return result, fmt.Errorf("delete the routes of dead letters: the schema was not changed, repeat it: %w", err)
	}
	return result, nil
}

// write writes the entries, the counters, and the messages, all in one transaction.
func write(ctx context.Context, tx *store.Tx, keys secret.Keyring, result *Result) error {
	if err := tx.LockForHandBack(ctx); err != nil {
		return fmt.Errorf("lock the queues: %w", err)
	}
	// The other executor creates all children of a list when it starts, and never later.
	lists, err := tx.UnmadeLists(ctx)
	if err != nil {
		return fmt.Errorf("find lists without all children: %w", err)
	}
	for _, id := range lists {
		created, err := advancement.Unroll(ctx, tx.Queries, advancement.Config{Keys: keys}, id)
		if err != nil {
			return err
		}
		result.Made += created
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

// readLists reads the concurrency limits of a page's lists.
func (p *plan) readLists(ctx context.Context, tx *store.Tx, rows []store.LiveExecutionsRow) error {
	var parents []int64
	var tasks []string
	for _, row := range rows {
		one := list{row.Parent, row.List}
		if _, known := p.lists[one]; row.List != "" && !known {
			p.lists[one] = nil // not a child of a workflow, unless ListWindows returns it
			parents, tasks = append(parents, row.Parent), append(tasks, row.List)
		}
	}
	if len(parents) == 0 {
		return nil
	}
	windows, err := tx.ListWindows(ctx, parents, tasks)
	if err != nil {
		return fmt.Errorf("read the concurrency of %d lists: %w", len(parents), err)
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

// appendMessages appends the messages for the other executor to the outbox.
func appendMessages(ctx context.Context, tx *store.Tx, wake []int64, result *Result) error {
	at := time.Now()
	ends, err := tx.UnsettledEnds(ctx)
	if err != nil {
		return fmt.Errorf("read ended children of workflows: %w", err)
	}
	for part := range slices.Chunk(ends, page) {
		messages := make([]outbox.Message, len(part))
		for i, e := range part {
			messages[i], err = outbox.Completed(store.ReadOutcomesRow{
				ID: e.ID, Action: &e.Action, ActionRef: e.ActionRef, Status: lifecycle.Status(e.Status),
				Result:     e.Result,
				FinishedAt: at,
			}, at, source)
			if err != nil {
				return err
			}
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
		order := make(map[int64]int, len(part))
		for i, id := range part {
			order[id] = i
		}
		slices.SortFunc(rows, func(a, b store.ReadRequestsRow) int { return cmp.Compare(order[a.ID], order[b.ID]) })
		messages := make([]outbox.Message, len(rows))
		for i, e := range rows {
			messages[i], err = outbox.Encode(message.TypeExecutionRequested, message.ExecutionRequested{
				ExecutionID: e.ID, ActionID: e.Action, ActionRef: e.ActionRef, ParentID: e.Parent,
				EnforcementID: e.Enforcement, Config: small(e.Config),
			}, at, source)
			if err != nil {
				return err
			}
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

// dropRoutes deletes the routes to the dead-letter queue: the other executor ends the executions of its messages
// without releasing their slots.
func dropRoutes(ctx context.Context, deps Deps) error {
	workers, err := deps.Store.DeadLetterRouteWorkers(ctx, manyWorkers)
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	keys := message.DeadLetterKeys()
	for _, id := range workers {
		keys = append(keys, message.DispatchKey(id), message.CancelKey(id))
	}
	bindings := make([]broker.Binding, len(keys))
	for i, key := range keys {
		bindings[i] = broker.Binding{
			Source: message.ExchangeDeadLetter, Queue: message.QueueDeadLetter,
			RoutingKey: key,
		}
	}
	if deps.Management != nil {
		// The queues of workers that are gone are bound too. Without an answer their bindings stay, which lead nowhere.
		present, _ := deps.Management.QueueBindings(ctx, message.QueueDeadLetter)
		for _, b := range present {
			_, ofWorker := message.WorkerOfKey(b.RoutingKey)
			if ofWorker && b.Source == message.ExchangeDeadLetter && !slices.Contains(bindings, b) {
				bindings = append(bindings, b)
			}
		}
	}
	if err := deps.Broker.UnbindQueues(ctx, bindings); err != nil {
		return err
	}
	if deps.Management != nil {
		// Without the right to delete it the policy stays; it then names a deleted exchange.
		_ = deps.Management.DeletePolicy(ctx, broker.PolicyUnrouted)
	}
	return deps.Broker.DeleteExchange(ctx, broker.ExchangeUnrouted)
}
