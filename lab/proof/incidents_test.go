package proof

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/scheduler"
	"github.com/attune-go/attune/lab/testkit"
)

// Incidents of other systems, each with the test that prevents it here. Tests
// with other names cover the incidents that are not below:
//
//	solid_queue#456, #476  recovery: TestAnEndedHolderIsFound, TestEndedQueuedExecutionsAndUnfilledQueuesAreFound;
//	                       TestAdmissionFollowsItsRules (erase, giveBack)
//	prefect#23183          TestL3AFreshReplicaPromotesTheNextOfASharedLimit, and every promotion of the model
//	dbos#739, dbos-py#204  TestAdmissionFollowsItsRules: a repeated request keeps its place
//	graphile#621           TestAdmissionFollowsItsRules: exactly the admitted executions are dispatched
//	graphile#313           admission: TestRetriesJoinTheQueueWhereTheSettingSays; the model's retries
//	airflow#14205, #17375  as trigger.dev#1272
//
// The invariants of admission. The model, the chaos test and the in-memory
// property test of package admission check all of them too:
//
//	S1, S2  scheduler: TestARequestIsAdmittedPlacedAndDispatchedInOneCommit
//	S3      TestS3ALimitThatIsLoweredWhileABatchIsPlannedHolds, TestIncidentSt24481…
//	S4, S5  scheduler: TestALimitQueuesInOrderAndCompletionPromotes; admission: TestS4SharedLimits…
//	S6, S7  TestIncidentKestra17759…, TestIncidentSolidQueue761…; recovery: TestAnEndedHolderIsFound
//	S17     TestS17AQueueNeverExceedsItsMaximum
//	S21     triage: TestS21APausedQueueAdmitsNothingAndKeepsItsOrder; TestIncidentSt24779…
//	S22     TestS22NoWindowHasMoreStartsThanAllowed; policy: TestRateNeverExceedsItsAllowanceInAnyWindow
//	S23     TestS23ALowerLaneWaitsForSevenAtMost; admission: TestS23LowerLanesArePromotedToo
//	L3      TestL3…, TestIncidentSolidQueue689…, TestIncidentSolidQueue694…
//
// The promises of several schedulers together, and the faults that test them:
//
//	two schedulers, one message             TestHATwoSchedulersOnOneMessageDispatchOnce
//	three schedulers, one message k times   TestHAThreeSchedulersOneMessageManyTimes; scheduler: TestThreeReplicasUnderAbuse
//	completion by another replica           TestHACompletionByAnotherReplicaAdvancesTheQueue
//	crash after claim before publish        TestHACrashAfterClaimBeforePublish
//	crash after release before republish    TestHACrashAfterReleaseBeforeRepublish
//	duplicate completions, any order        TestHADuplicateCompletionsReleaseOnce, TestHAReplayOfEverythingChangesNothing
//	completion before running (F15)         TestHACompletionBeforeTheRunningReport
//	cancelled before requested (F15)        TestHACancelledBeforeRequested; TestACancelHoldsWhenReplicasDie; cancellation: all
//	message before its row (F15)            engine: TestAMessageBeforeItsRowIsServedWhenTheRowComes
//	late completion, already given up       TestHALateCompletionAfterTheEngineGaveUp;
//	                                        engine: TestWorkOfASilentWorkerIsRepeatedAsANewRowWhenItCannotBeFenced
//
//	F1   kill -9 at random                  TestReplicasUnderChaosAreLinearizable; engine: TestKillingOneOfTwoReplicas…
//	F1   kill -9 at every moment, in pairs  TestAReplicaThatDiesAtAnyPoint…, TestTwoReplicasThatDie…
//	F2   frozen past its leases             TestAFrozenReplica…, TestFaultsUnderLoad…/AReplicaIsFrozenAndThawed
//	     a worker                           TestAFrozenWorkerDoesNoHarmWhenItContinues
//	F3   rolling restart                    TestARollingRestartIsNotNoticed
//	F4   connections closed by an operator  TestFaultsUnderLoad…/AnOperatorClosesEveryConnection;
//	     broker killed and restarted        engine: TestServersThatGoAwayLoseNothing; broker: TestConsumerOutlivesItsBroker
//	F5   publishers blocked                 broker: TestBlockedBroker
//	F7   database killed and restarted      engine: TestServersThatGoAwayLoseNothing
//	F9   backends terminated                TestFaultsUnderLoad…/TheConnectionsOfTheBatchesAreTerminated
//	F11  a database that cannot write       engine: TestAServerThatCannotWriteIsAwaited
//	F13  cut and frozen links               broker: TestNothingIsLostWhenConnectionsClose, TestFrozenServer, TestSilentServer
//	F14  duplicates                         TestReplicasUnderChaosAreLinearizable, TestHAReplayOfEverythingChangesNothing
//	F16  loss between commit and publish    outbox: TestKilledAtEveryPointNothingIsLost; the crashes above
//	F17  poison                             TestFaultsUnderLoad…/PoisonComesByBothHotQueues; message: the fuzz targets
//	F18  a worker that never answers        engine: TestTheWorkOfADeadWorkerIsDecided…
//	     that answers twice                 TestReplicasUnderChaosAreLinearizable; engine: TestAFailureIsRepeated…
//	     that lies                          engine: TestUnreportedEndsAreAnnouncedAndContradictingReportsRecorded
//	F24  a worker dies at every moment      TestWorkersThatDieAtAnyPointAreFollowedByAnother
//	L7   no resource stays in use           TestFaultsUnderLoad…/L7NothingIsLeft
//
// Workers that fail, each on three replicas that all search for such workers,
// with every connection cut in the middle; the scenarios are the published ones:
//
//	scenario 1, L4, upstream 33             TestThePublishedScenarios…/Scenario1…
//	scenario 2, upstream 11, 18, 32         TestThePublishedScenarios…/Scenario2… (in place; as a new row)
//	scenario 3                              TestScenario3AllWorkersAreDown, which has lost_running, too
//	scenario 4, upstream 31                 TestThePublishedScenarios…/Scenario4…
//	scenario 5, S20, L5, upstream 1, 34     TestThePublishedScenarios…/Scenario5… (in place; as a new row)
//	S8, S9: declared dead, and finishes     TestThePublishedScenarios…/AWorkerThatWasTakenForDeadFinishes
//	F2, S2: frozen and thawed               TestThePublishedScenarios…/AFrozenWorkerGoesOn
//	upstream 37: a timeout forgotten        TestThePublishedScenarios…/AWorkerForgetsTheTimeout
//	upstream 30: heartbeats end, resume     TestThePublishedScenarios…/HeartbeatsEndAndResume
//	F4: the broker restarts in the middle   TestTheBrokerRestartsInTheMiddleOfTheScenarios
//	upstream 35: all at once, at random     TestThreeReplicasAgreeWhileWorkersFall (slow)
//	upstream 36: parents, inquiries         recovery: TestTheWorkOfAWorkerThatIsGoneIsEnded leaves executions without a worker alone
//
// Workflows, from the event that starts them to their end (S10–S13, S16, upstream
// 38–51). Package workflow tests the decisions, package advancement the writes:
//
//	F1, F16  kill -9 at every moment        TestAWorkflowSurvivesAReplicaThatDiesAtAnyPoint, …TwoReplicasThatDie (slow)
//	F2       frozen with a workflow locked  TestAReplicaThatFreezesInAWorkflowDoesNoHarmLater (slow)
//	F4, F9   connections, broker, database  TestWorkflowsOutliveFaults, TestWorkflowsOutliveARestartOfTheBroker
//	F14, F15 all twice and in any order     TestThreeReplicasThatGetEveryMessageTwiceInAnyOrder, TestTwoReplicas…AndOneDies
//	F24      a worker dies within a list    TestAWorkerThatDiesInTheMiddleOfAList
//	S16      answered at the last moment    TestS16AnAnswerAndTheEndOfItsTimeExcludeEachOther

// together runs a function on several fresh replicas at the same moment.
func (r *room) together(n int, do func(replica *scheduler.Scheduler, which int)) {
	r.t.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		replica := r.replica()
		wg.Go(func() {
			<-start
			do(replica, i)
		})
	}
	close(start)
	wg.Wait()
}

// try is on for goroutines: a failure is reported and stops nothing.
func (r *room) try(replica *scheduler.Scheduler, ended, asked []int64) scheduler.Result {
	result, err := replica.Run(testkit.Context(r.t), scheduler.NewReleaseStep(ended), scheduler.FillStep{},
		scheduler.NewRequestStep(asked))
	if err != nil {
		r.t.Errorf("batch: %v", err)
	}
	return result
}

// queued lists the queued executions of an action, in order.
func (r *room) queued(action testkit.ActionRow) []int64 {
	r.t.Helper()
	ids := []int64{}
	require.NoError(r.t, r.store.Pool().QueryRow(testkit.Context(r.t), `
		SELECT coalesce(array_agg(q.execution_id ORDER BY q.lane DESC, q.queue_order), '{}')
		FROM execution_admission_entry q JOIN execution_admission_state s ON s.id = q.state_id WHERE s.action_id = $1`, action.ID).Scan(&ids))
	return ids
}

// hatchet#4778: the engine guessed the running ones from the first rows, by a number from before the commit. Here
// a row with a low number is committed after others hold all slots: it finds no free slot, and waits where it
// arrived.
func TestIncidentHatchet4778HoldersAreCountedNotGuessedFromNumbers(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.two", 2)
	tx := testkit.Begin(t, r.store)
	var early int64
	require.NoError(t, tx.QueryRow(testkit.Context(t),
		`INSERT INTO execution (action, action_ref, status) VALUES ($1, $2, 'requested') RETURNING id`,
		action.ID, action.Ref).Scan(&early))
	others := r.make(action, 4)
	require.Equal(t, scheduler.Result{Missing: []int64{early}}, r.ask(early), "it is not visible yet")
	require.Equal(t, 2, r.ask(others[3], others[1]).Granted)
	require.NoError(t, tx.Commit(testkit.Context(t)))
	require.Equal(t, scheduler.Result{Enqueued: 3}, r.ask(others[2], early, others[0]))
	require.Equal(t, 2, r.holders(action))
	require.Equal(t, []int64{others[2], early, others[0]}, r.queued(action), "in the order in which they came")
	r.settle()
}

// hatchet#1164: all rows of one transaction have one time. The order of the queue is a number of its own, and a
// group with free slots gives none of them to another group.
func TestIncidentHatchet1164OneTimeForAllIsNoOrder(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.grouped", 2, func(p *testkit.PolicyRow) { p.Parameters = []string{"tenant"} })
	ids := testkit.Column[int64](t, r.store.Pool(), `
		INSERT INTO execution (action, action_ref, status, config)
		SELECT $1, $2, 'requested', jsonb_build_object('tenant', CASE WHEN n = 7 THEN 'b' ELSE 'a' END)
		FROM generate_series(1, 20) n RETURNING id`, action.ID, action.Ref)
	require.Equal(t, 1, r.count(`SELECT count(DISTINCT created) FROM execution`))
	lone := ids[6]
	ids = slices.Delete(ids, 6, 7)
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	require.Equal(t, scheduler.Result{Granted: 3, Enqueued: 17}, r.ask(append([]int64{lone}, ids...)...))
	for next := 2; next < len(ids); next++ {
		require.Equal(t, ids[next:], r.queued(action))
		r.finish(lifecycle.StatusCompleted, ids[next-2])
		require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, r.report(ids[next-2]))
	}
	r.settle()
}

// solid_queue#761: a worker was presumed dead, another execution got its slot, and the returning worker released
// the same slot again. Here a holder is released once, whichever service reports later.
func TestIncidentSolidQueue761AReturningWorkerReleasesNothing(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.one", 1)
	ids := r.make(action, 4)
	r.ask(ids...)
	for i := range 3 {
		r.finish(lifecycle.StatusAbandoned, ids[i]) // as recovery does when the worker is silent
		require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, r.report(ids[i]))
		// The worker returns, writes by id as existing workers do, and reports it.
		testkit.Exec(t, r.store, `UPDATE execution SET status = 'completed', result = '{"late": true}' WHERE id = $1`,
			ids[i])
		r.together(3, func(replica *scheduler.Scheduler, _ int) { r.try(replica, ids[:i+1], nil) })
		require.Equal(t, 1, r.holders(action))
		require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, r.store, ids[i+1]))
		require.Equal(t, lifecycle.StatusAbandoned, testkit.StatusOf(t, r.store, ids[i]), "the first end stands")
	}
	r.settle()
}

// solid_queue#689: a newcomer read "full" just before the end of the last holder, which found none waiting. Here both
// decide under one lock, so that one of them sees the other.
func TestIncidentSolidQueue689NoWaiterForAFreeSlot(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.one", 1)
	ids := r.make(action, 25)
	r.ask(ids[0])
	for i := range len(ids) - 1 {
		r.finish(lifecycle.StatusCompleted, ids[i])
		r.together(2, func(replica *scheduler.Scheduler, which int) {
			if which == 0 {
				r.try(replica, ids[i:i+1], nil)
			} else {
				r.try(replica, nil, ids[i+1:i+2])
			}
		})
		require.Equal(t, lifecycle.StatusScheduled, testkit.StatusOf(t, r.store, ids[i+1]))
	}
	r.settle()
}

// solid_queue#694: of two simultaneous releases one found the head locked, skipped it, and presumed an empty
// queue; in the end one of five slots was used. Here all five are filled again, however many releases there are at
// once.
func TestIncidentSolidQueue694SlotsThatAreGivenBackTogetherAreAllFilled(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.five", 5)
	ids := r.make(action, 40)
	r.ask(ids...)
	for wave := 0; wave+10 <= len(ids); wave += 5 {
		running := ids[wave : wave+5]
		r.finish(lifecycle.StatusCompleted, running...)
		r.together(5, func(replica *scheduler.Scheduler, which int) { r.try(replica, running[which:which+1], nil) })
		require.Equal(t, 5, r.holders(action))
		for _, status := range r.statuses(ids[wave+5 : wave+10]...) {
			require.Equal(t, lifecycle.StatusScheduled, status)
		}
	}
	r.settle()
}

// prefect#8251, #17415, #18991: one transaction took a slot and another wrote its reason, and a failed release was
// swallowed. Here a failed batch changes nothing and returns its error.
func TestIncidentPrefect8251ABatchIsAtomic(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.one", 1)
	ids := r.make(action, 2)
	r.ask(ids...)
	r.finish(lifecycle.StatusCompleted, ids[0])
	r.sent.take(t)
	for _, table := range []string{
		"outbox", "queue_stats", "execution_admission_state", "execution_admission_entry",
		"execution",
	} {
		testkit.Exec(t, r.store, `
			CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'disk full'; END $$`)
		testkit.Exec(t, r.store, `CREATE TRIGGER fails BEFORE INSERT OR UPDATE OR DELETE ON `+table+
			` FOR EACH STATEMENT EXECUTE FUNCTION fails()`)
		_, err := r.first.Run(testkit.Context(t), scheduler.NewReleaseStep(ids[:1]), scheduler.FillStep{})
		require.ErrorContains(t, err, "disk full", table)
		testkit.Exec(t, r.store, `DROP FUNCTION fails() CASCADE`)
		require.Equal(t, 1, r.count(`SELECT count(*) FROM execution_holder WHERE execution = $1`, ids[0]),
			"it still holds its slot")
		require.Equal(t, ids[1:], r.queued(action))
		dispatched, _ := r.sent.take(t)
		require.Empty(t, dispatched)
	}
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, r.report(ids[0]))
	r.settle()
}

// kestra#17759: in four ways a slot was never released, and a repeated terminal event released two. However an
// execution ends, and however often and to whichever replica that is reported, one slot is released.
func TestIncidentKestra17759EveryEndGivesOneSlotBack(t *testing.T) {
	r := newRoom(t)
	for _, end := range []lifecycle.Status{
		lifecycle.StatusCompleted, lifecycle.StatusFailed, lifecycle.StatusCancelled, lifecycle.StatusTimeout,
		lifecycle.StatusAbandoned,
	} {
		for _, from := range []lifecycle.Status{lifecycle.StatusScheduled, lifecycle.StatusRunning,
			lifecycle.StatusCanceling} {
			action := r.limited(fmt.Sprintf("pk.%s_%s", from, end), 2)
			ids := r.make(action, 6)
			r.ask(ids...)
			if from != lifecycle.StatusScheduled {
				r.finish(from, ids[0])
			}
			require.Equal(t, scheduler.Result{}, r.report(ids[0]), "it has not ended")
			r.finish(end, ids[0])
			r.together(3, func(replica *scheduler.Scheduler, _ int) { r.try(replica, []int64{ids[0], ids[0]}, nil) })
			require.Equal(t, 2, r.holders(action), "from %s to %s", from, end)
			require.Equal(t, ids[3:], r.queued(action), "one has moved up")
		}
	}
	r.settle()
}

// st2#4481: with two schedulers a limit of one did not hold, because the lock covered the question and not the
// answer.
func TestIncidentSt24481OneIsOneForTwoSchedulers(t *testing.T) {
	r := newRoom(t)
	for i := range 12 {
		action := r.limited(fmt.Sprintf("pk.one%d", i), 1)
		ids := r.make(action, 4)
		r.together(4, func(replica *scheduler.Scheduler, which int) { r.try(replica, nil, ids[which:which+1]) })
		require.Equal(t, 1, r.holders(action))
		require.Len(t, r.queued(action), 3)
	}
	r.settle()
}

// st2#4655: waiting executions moved between two kinds of waiting, and grew with every move. Here a repeated request
// changes nothing.
func TestIncidentSt24655WaitingCostsNothing(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.one", 1)
	ids := r.make(action, 5)
	r.ask(ids...)
	traces := func() []int {
		return []int{
			r.count(`SELECT count(*) FROM execution_history`),
			r.count(`SELECT count(*) FROM execution_admission_entry`),
			r.count(`SELECT count(*) FROM outbox`),
			r.count(`SELECT next_queue_order FROM execution_admission_state WHERE action_id = $1`, action.ID),
		}
	}
	before := traces()
	for range 10 {
		r.together(3, func(replica *scheduler.Scheduler, _ int) { r.try(replica, nil, ids) })
	}
	require.Equal(t, before, traces())
	require.Equal(t, ids[1:], r.queued(action))
	r.settle()
}

// st2#4779: paused executions did not count. Here running ones keep their slots during a pause and after the
// resume.
func TestIncidentSt24779RunningExecutionsOfAPausedQueueCount(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.two", 2)
	ids := r.make(action, 4)
	r.ask(ids...)
	testkit.Exec(t, r.store, `UPDATE execution_admission_state SET paused = true`)
	r.finish(lifecycle.StatusCompleted, ids[0])
	require.Equal(t, scheduler.Result{Released: 1}, r.report(ids[0]))
	testkit.Exec(t, r.store, `UPDATE execution_admission_state SET paused = false`)
	require.Equal(t, scheduler.Result{Granted: 1}, r.ask(ids[2]), "one of two was free")
	require.Equal(t, ids[3:], r.queued(action))
	r.settle()
}

// st2#6044: with some mixtures of statuses a limit of one admitted no execution. trigger.dev#1272, airflow#14205:
// a parent that waited for its child, or a retry for its time, held the slot that the child needed. Here only an
// admitted execution holds a slot, whatever the statuses are: none of these was admitted.
//
// Parts of the engine that will make executions wait (for their children, for an answer, for the time of a retry)
// must release the slot when the wait starts and return through admission; their tests belong next to this one.
func TestIncidentTriggerDev1272OtherWaitsHoldNoSlot(t *testing.T) {
	r := newRoom(t)
	action := r.limited("pk.one", 1)
	parent := r.make(action, 1, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning })[0]
	asks := r.make(action, 1, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusRunning })[0]
	testkit.Exec(t, r.store, `INSERT INTO inquiry (execution, prompt, status) VALUES ($1, 'go on?', 'pending')`, asks)
	failed := r.make(action, 1, func(e *testkit.ExecutionRow) { e.Status = lifecycle.StatusFailed })[0]
	// it is not due yet
	r.make(action, 1, func(e *testkit.ExecutionRow) { e.OriginalExecution, e.RetryCount = &failed, 1 })
	for _, status := range []lifecycle.Status{lifecycle.StatusScheduling, lifecycle.StatusCanceling,
		lifecycle.StatusCompleted} {
		r.make(action, 1, func(e *testkit.ExecutionRow) { e.Status = status })
	}
	child := r.make(action, 2, func(e *testkit.ExecutionRow) { e.Parent = &parent })
	require.Equal(t, scheduler.Result{Granted: 1, Enqueued: 1}, r.ask(child...))
	r.finish(lifecycle.StatusCompleted, child[0])
	require.Equal(t, scheduler.Result{Released: 1, Granted: 1}, r.report(child[0]))
	r.settle()
}
