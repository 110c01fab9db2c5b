// Package worker is the reference worker and the Go SDK for actions: it registers, consumes
// dispatches from its queue, runs them, and reports their ends.
//
// The database row of an execution is authoritative; messages only name it. A dispatch starts
// nothing unless one guarded statement moves the row from scheduled to running for this worker,
// this attempt and this process (invariant S2). The dispatch is acknowledged when the action has
// begun. The end is one guarded statement too. The process whose statement succeeds publishes
// execution.completed, with the same message id until the broker confirms. An execution that was
// reassigned meanwhile is stopped and not reported.
//
//	dispatch ─▶ intake ─▶ StartExecutions ─▶ run ─▶ finisher ─▶ FinishExecutions ─▶ announcer ─▶ execution.completed
//	cancel   ─▶ roster (ends the context of the run) ◀─ poll of the rows
//
// No timers collect work: everything that arrived or finished during one statement goes into the
// next one.
//
// Failures:
//   - An interpreter that is missing, fails or hangs: no version of its runtime
//     is announced. Registration waits for the answers, 3 seconds at most.
//   - Database away: starts and ends are repeated until they succeed. After a
//     lost answer a start is repeated such that a row this process has moved
//     already counts as started. The dispatches stay unacknowledged.
//   - Broker away: running executions continue, ends are written, completions are kept
//     (bounded) and published later. The heartbeat continues with status error, so that a
//     worker that cannot consume receives nothing. Running executions do not count as lost.
//   - Process killed: unstarted dispatches return to the queue. The next
//     process with this name ends the rows that were running as abandoned,
//     before it takes new work.
//   - Database restored, or failed over without the latest commits: rows that run here although
//     this process has ended them, or never had them, are ended as abandoned.
//   - No process can be started: nothing ran, so the execution is scheduled again and its dispatch
//     returns to the queue. The worker rests, with status error and the reason, until a trial
//     succeeds.
//   - Two processes with one name: the second refuses to start while the first lives. If it replaces
//     it, it has the row's incarnation. The first notices with its next start or beat, returns what
//     it has not started, and stops.
//   - Stop: no new work (unstarted deliveries return), running work may finish
//     within ShutdownTimeout, the rest is stopped and reported as failed, ends
//     are written and announced, the heartbeat ends last.
package worker
