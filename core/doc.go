// Package core is the map of the engine. It holds no code; its test enforces
// the layers below.
//
// # Layers
//
// A package imports only packages of lower layers, and of its own layer only along
// an arrow. layers_test.go has the same table and prints the reason of a broken rule.
//
//	L0   lifecycle jsonvalue phrase supervise; telemetry → phrase
//	     statuses, retries, JSON, texts, services, logs, metrics; no I/O
//	L1   message expr schema policy placement workflow pack config secret
//	     rules without I/O; time is passed in
//	L2   store broker
//	     the clients of PostgreSQL and RabbitMQ; they decide nothing
//	L2½  batch tracing
//	     batches: tries, pauses, holding, bisecting; ids of traces, spans for a collector
//	L3   outbox
//	     messages and core.alert events, committed with the transaction that writes them
//	L4   admission, scheduler → admission, inquiry; advancement, eventing, retention,
//	     recovery, deadletter, liveness, cancellation → scheduler, admission
//	     the steps: each moves executions in transactions
//	L5a  monitor catalog submit handback; triage, explain → monitor; alerting → monitor,
//	     explain; doctor → monitor, explain, alerting;
//	     act → triage, monitor, explain: sentences, confirmations and errors of acts, for every door
//	     reads and actions for users and programs
//	L5b  engine → api; worker
//	     the running parts
//	     above: cmd/attune-executor, cmd/attune-tui and tui; lab and cmd/attune-lab, which nothing below imports
//
// # The path of a message
//
//	1   event.created             eventing            enforcement per matching rule
//	2   enforcement.created       scheduler           parameters, execution requested
//	3   execution.requested       scheduler, admission admit, queue or refuse
//	4   the same transaction      scheduler, placement choose workers; scheduled
//	4w  a workflow, in place of 4 advancement         state, first tasks
//	5   the dispatch message      worker              running, then terminal
//	6   execution.completed       scheduler           release, promote, dispatch
//	7   the same transaction      lifecycle, inquiry
//	7w  the end of a task         advancement         next tasks, or the workflow's end
//	    loops and dead letters    recovery, deadletter, liveness
//
// The transaction that causes a message writes it to the outbox; it is published after
// the commit. engine/steps.go lists the steps in this order.
//
// # Where to find what
//
//	a status, a transition, a retry lifecycle
//	a routing key, queue, payload   message
//	a table                         migrations/sql; its statements in store/queries
//	a slot, a queue position        admission only
//	a limit and its group           policy
//	a file with policies            pack; catalog applies it to the tables
//	the choice of a worker          placement; applied by scheduler
//	the state of a workflow         workflow (rules), advancement (rows)
//	a dead letter                   deadletter
//	a number on the dashboard       monitor
//	an operator's action            act (its words), triage (its transactions)
//	why an execution waits          explain
//	a measure and an alert rule     alerting
//	invariants                      doctor
//	a setting                       config
//	limits of a value's size        jsonvalue
//	a published bearer token        secret
package core
