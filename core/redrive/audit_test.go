package redrive

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/testkit"
)

// audited is a row of operator_audit.
type audited struct {
	Actor, Action, Target, Reason, Outcome, Error string
	Op                                            string
	Done, Left                                    int
}

func (s *site) audits() (list []audited) {
	s.t.Helper()
	rows, err := s.store.Pool().Query(s.ctx, `select actor, action, target, coalesce(reason, ''), outcome, coalesce(error, ''), request
		from operator_audit where target_type = 'broker_queue' order by id`)
	require.NoError(s.t, err)
	defer rows.Close()
	for rows.Next() {
		var a audited
		var raw []byte
		require.NoError(s.t, rows.Scan(&a.Actor, &a.Action, &a.Target, &a.Reason, &a.Outcome, &a.Error, &raw))
		var request struct {
			Op      string  `json:"op"`
			Receipt Receipt `json:"receipt"`
		}
		require.NoError(s.t, json.Unmarshal(raw, &request))
		a.Op, a.Done, a.Left = request.Op, request.Receipt.Done, request.Receipt.Left
		list = append(list, a)
	}
	require.NoError(s.t, rows.Err())
	return list
}

// TestEveryActOnTheBrokerIsAudited: with its operation, who, why and how many.
func TestEveryActOnTheBrokerIsAudited(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, true, nil)
	s.queue("parked", nil)
	s.letters(1, 2, 3, 4)
	letters := s.snapshot().Letters
	var want []audited
	did := func(r *Receipt) {
		require.NotZero(t, r.Audit)
		want = append(want, audited{"ann@desk", "dead_letter." + r.Do, message.QueueDeadLetter, "because", "done", "", r.Op, r.Done, 0})
	}
	discarded := s.run(Order{Do: DoDiscard, Letters: letters[:1]})
	did(discarded)
	did(s.run(Order{Do: DoMove, Letters: letters[1:2], Key: "parked"}))
	did(s.run(Order{Do: DoUndo, Op: discarded.Op}))
	did(s.run(Order{Do: DoPurge}))
	require.Equal(t, want, s.audits())

	s.letters(5, 6)
	p, err := s.Plan(s.ctx, Order{Do: DoDiscard, Letters: s.snapshot().Letters})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(s.ctx)
	_, err = s.Run(ctx, p, "", func(Progress) { cancel() })
	require.NoError(t, err)
	last := s.audits()[4]
	require.Equal(t, []any{"interrupted", "stopped by hand", 1, 1}, []any{last.Outcome, last.Error, last.Done, last.Left})

	testkit.Exec(t, s.store, `alter table operator_audit add constraint none check (action <> 'dead_letter.purge') not valid`)
	p, err = s.Plan(s.ctx, Order{Do: DoPurge, Real: true})
	require.NoError(t, err)
	_, err = s.Run(s.ctx, p, "", nil)
	require.ErrorContains(t, err, "audit the purge")
	s.becomes(message.QueueDeadLetter, 1) // what is not written down is not done
}

// TestWhatIsLeasedElsewhereIsBlocked in the list, in the plan, and in the run if that
// comes between.
func TestWhatIsLeasedElsewhereIsBlocked(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ids := s.expired(3)
	s.letters(ids...)
	testkit.Exec(t, s.store, `insert into work_queue (ref, label, dispatch_action_ref) values ('q', 'Q', 'pk.a')`)
	testkit.Exec(t, s.store, `insert into work_queue_item (queue, queue_ref, payload, enqueue_source, status, leased_execution, lease_expires_at)
		select w.id, w.ref, '{}', 'api', 'leased', x.id, now() + interval '1 hour' from work_queue w, execution x`)
	testkit.Exec(t, s.store, `insert into work_queue_dispatch (queue, queue_ref, execution, leased_item_count)
		select i.queue, i.queue_ref, i.leased_execution, 1 from work_queue_item i`)
	testkit.Exec(t, s.store, `update execution x set config = jsonb_build_object('queue_items', jsonb_build_array(jsonb_build_object('id', i.id)))
		from work_queue_item i where i.leased_execution = x.id`)
	lease := func(from, to int64) {
		testkit.Exec(t, s.store, `update work_queue_item set leased_execution = $2 where leased_execution = $1`, from, to)
	}
	lease(ids[0], ids[2])
	letters := s.snapshot().Letters
	rows, err := Rows(s.ctx, s.store.Queries, ids)
	require.NoError(t, err)
	p, err := s.Plan(s.ctx, Order{Do: DoRequeue, Letters: letters})
	require.NoError(t, err)
	listed := Judge(Facts{Letter: &letters[0], Row: rows[ids[0]], Known: true})
	require.Equal(t, Blocked, listed.Do)
	require.Equal(t, listed, p.Items[0].Verdict, "the same advice, word by word")
	require.Contains(t, p.Items[0].Skip, listed.Why)
	require.Equal(t, 2, p.Work())

	lease(ids[1], ids[2]) // after the plan
	r, err := s.Run(s.ctx, p, "", nil)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{r.Done, r.Changed})
	require.Equal(t, 1, s.count(`select count(*) from execution where status = 'requested'`))

	letters = s.snapshot().Letters
	p, err = s.Plan(s.ctx, Order{Do: DoRequeue, Letters: letters})
	require.NoError(t, err)
	require.Contains(t, p.Nothing, "leased to execution")
	require.Equal(t, 2, s.run(Order{Do: DoRequeue, Letters: letters, Override: "the other was cancelled"}).Done)
	require.Equal(t, 2, s.count(`select count(*) from audit_event where details->>'override' = 'the other was cancelled'`))
}

// TestWhatBlocksAfterThePlanStopsTheLetter: a parent that has ended since is one.
func TestWhatBlocksAfterThePlanStopsTheLetter(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	ids := s.expired(2)
	s.letters(ids[0])
	testkit.Exec(t, s.store, `update execution set parent = $2 where id = $1`, ids[0], ids[1])
	testkit.Exec(t, s.store, `update execution set status = 'running', result = null where id = $1`, ids[1])
	p, err := s.Plan(s.ctx, Order{Do: DoRequeue, Letters: s.snapshot().Letters})
	require.NoError(t, err)
	require.Equal(t, 1, p.Work())
	testkit.Exec(t, s.store, `update execution set status = 'cancelled' where id = $1`, ids[1])
	r, err := s.Run(s.ctx, p, "", nil)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 1}, []int{r.Done, r.Changed, r.After})
}
