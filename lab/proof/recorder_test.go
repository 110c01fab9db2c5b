package proof

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

// The database writes the log of changes in the transactions that make them. It records the changes, and only a
// lower bound of their times.
const logOfChanges = `
CREATE TABLE proof_log (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	kind text NOT NULL, execution bigint NOT NULL, lane int, place bigint, ticket bigint,
	tx bigint NOT NULL DEFAULT txid_current(), begun timestamptz NOT NULL DEFAULT now()
);
CREATE FUNCTION proof_entry() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	INSERT INTO proof_log (kind, execution, lane, place, ticket)
	VALUES ('enqueue', NEW.execution_id, 1 - NEW.lane, NEW.queue_order, NEW.id);
	RETURN NULL;
END $$;
CREATE FUNCTION proof_slot() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
	INSERT INTO proof_log (kind, execution) VALUES (CASE TG_OP WHEN 'DELETE' THEN 'complete' ELSE 'admit' END,
		CASE TG_OP WHEN 'DELETE' THEN OLD.execution ELSE NEW.execution END);
	RETURN NULL;
END $$;
CREATE TRIGGER proof_entry AFTER INSERT ON execution_admission_entry FOR EACH ROW EXECUTE FUNCTION proof_entry();
CREATE TRIGGER proof_slot AFTER INSERT OR DELETE ON execution_holder FOR EACH ROW EXECUTE FUNCTION proof_slot();`

// change is one row of the log, with an upper bound of its time.
type change struct {
	id        int64
	kind      string
	execution int64
	lane      *int
	place     *int64 // in its queue
	ticket    *int64 // among all waiting executions
	tx        int64
	begun     time.Time
	seen      time.Time
}

// recorder reads the log as fast as it can, so that it sees a change soon.
type recorder struct {
	store   *store.Store
	changes []change
	seen    map[int64]bool
	top     int64
}

func newRecorder(t *testing.T, st *store.Store) *recorder {
	t.Helper()
	testkit.Exec(t, st, logOfChanges)
	return &recorder{store: st, seen: map[int64]bool{}}
}

// read reads the new rows. A row gets its number before its commit, so a lower one may appear later: read asks for
// the missing ones again.
func (r *recorder) read(ctx context.Context) error {
	missing := []int64{}
	for id := max(r.top-2000, 1); id < r.top; id++ {
		if !r.seen[id] {
			missing = append(missing, id)
		}
	}
	rows, err := r.store.Pool().Query(ctx, `
		SELECT id, kind, execution, lane, place, ticket, tx, begun FROM proof_log WHERE id >= $1 OR id = ANY ($2)`, r.top, missing)
	if err != nil {
		return err
	}
	defer rows.Close()
	var found []change
	for rows.Next() {
		var c change
		if err := rows.Scan(&c.id, &c.kind, &c.execution, &c.lane, &c.place, &c.ticket, &c.tx, &c.begun); err != nil {
			return err
		}
		found = append(found, c)
	}
	now := time.Now()
	for _, c := range found {
		if r.seen[c.id] {
			continue
		}
		c.seen, r.seen[c.id], r.top = now, true, max(r.top, c.id)
		r.changes = append(r.changes, c)
	}
	return rows.Err()
}

// run reads until the context ends, and once more.
func (r *recorder) run(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		if err := r.read(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("read the log of changes: %v", err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(4 * time.Millisecond):
		}
	}
	if err := r.read(context.WithoutCancel(ctx)); err != nil {
		t.Errorf("read the log of changes: %v", err)
	}
}

// world has the observations of the workers, independent of the database.
type world struct {
	mu   sync.Mutex
	runs map[int64]*stay
}

// stay is the time of an execution at a worker: from the first start to the first end.
type stay struct {
	begun, ended time.Time
	messages     map[string]bool
}

func newWorld() *world { return &world{runs: map[int64]*stay{}} }

func (w *world) begins(id int64, messageID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.runs[id]
	if s == nil {
		s = &stay{begun: time.Now(), messages: map[string]bool{}}
		w.runs[id] = s
	}
	s.messages[messageID] = true
}

func (w *world) ends(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.runs[id]; s.ended.IsZero() {
		s.ended = time.Now()
	}
}

// acts makes acts on an execution's keys of the log and of the workers' observations.
func (w *world) acts(t *testing.T, changes []change, keys func(execution int64) []string) []act {
	t.Helper()
	sortChanges(changes)
	var acts []act
	turns := map[string]*turn{}
	admitted := map[int64]bool{}
	for _, c := range changes {
		a := act{Kind: c.kind, ID: c.execution, From: c.begun, Until: c.seen}
		s := w.runs[c.execution]
		switch c.kind {
		case "enqueue":
			a.Lane, a.Place = *c.lane, *c.place
		case "admit":
			require.False(t, admitted[c.execution], "S1: execution %d is admitted twice", c.execution)
			admitted[c.execution] = true
			require.NotNil(t, s, "execution %d never reached a worker", c.execution)
			if s.begun.Before(a.Until) {
				a.Until = s.begun // the worker got the message after the commit
			}
		case "complete":
			require.NotNil(t, s, "execution %d was released and never reached a worker", c.execution)
			if s.ended.After(a.From) {
				a.From = s.ended // it must hold its slot until then
			}
		}
		for _, key := range keys(c.execution) {
			a.Key = key
			if key == keyPack && c.kind == "enqueue" {
				a.Place = *c.ticket // its actions have queues of their own
			}
			if turns[key] == nil {
				turns[key] = &turn{}
			}
			acts = append(acts, turns[key].put(a, c.tx, acts))
		}
	}
	for id, s := range w.runs {
		require.True(t, admitted[id], "execution %d ran without being admitted", id)
		require.Len(t, s.messages, 1, "S2: execution %d was started by several dispatches", id)
	}
	return acts
}

// sortChanges sorts the log by transactions, and within one by the order of a batch's decisions: it releases,
// gives slots, and then enqueues. One statement writes the first two.
func sortChanges(changes []change) {
	first := map[int64]int64{}
	for _, c := range changes {
		if at, ok := first[c.tx]; !ok || c.id < at {
			first[c.tx] = c.id
		}
	}
	rank := map[string]int{"complete": 0, "admit": 1, "enqueue": 2}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(first[a.tx], first[b.tx]), cmp.Compare(rank[a.kind], rank[b.kind]),
			cmp.Compare(a.id, b.id))
	})
}

// turn numbers the acts on one key in the order of the log, which is the order of the commits, since each act is
// written with the key locked. The order of admissions within one commit is unknown: they share a number.
type turn struct {
	number int
	tx     int64
	admits []int // the positions of the last commit's admissions in the list
}

func (n *turn) put(a act, tx int64, acts []act) act {
	if a.Kind == "admit" && len(n.admits) > 0 && n.tx == tx {
		for _, at := range n.admits {
			acts[at].Size++
		}
		a.Size = len(n.admits)
	} else {
		n.number++
		n.admits = nil
	}
	if a.Kind == "admit" {
		n.admits = append(n.admits, len(acts))
	} else {
		n.admits = nil
	}
	n.tx = tx
	a.Turn, a.Size = n.number, a.Size+1
	return a
}
