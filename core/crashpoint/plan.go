// Package crashpoint names the points between two effects at which a process may crash. In a normal build Reach
// does nothing and costs nothing. Built with the tag crashpoints it kills the process at the point in
// ATTUNE_CRASH_AT like kill -9: nothing is flushed, released or logged.
//
//	ATTUNE_CRASH_AT=outbox:before-publish     at the first reach
//	ATTUNE_CRASH_AT=batch:committed:3         at the third reach
//	ATTUNE_CRASH_AT=hot:before-ack:2,hot:after-ack:2
//	                                          at the first of both
//
// ATTUNE_FREEZE_AT has the same format. There the process stops, as after SIGSTOP, and keeps its locks and
// connections until SIGCONT.
//
// A plan with an unknown point ends the process at its start: a crash that never happens proves nothing.
package crashpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The environment variables that hold the plans of a process.
const (
	Variable       = "ATTUNE_CRASH_AT"
	FreezeVariable = "ATTUNE_FREEZE_AT"
)

// Engine returns the points of an engine replica, in the order of a message's processing.
func Engine() []string {
	return []string{
		"batch:locked",        // the queues are locked, nothing is decided
		"batch:before-commit", // everything is decided, nothing is committed
		"batch:committed",     // the batch is committed, nothing is published
		"outbox:before-publish",
		"outbox:after-publish",
		"outbox:before-delete",
		"hot:before-ack", // the batch is committed, its messages are unacknowledged
		"hot:after-ack",
	}
}

// DeadLetters returns the points of an engine replica that handles dead letters.
func DeadLetters() []string {
	return []string{
		"dead-letter:before-commit", // the ledger row is written and not committed
		"dead-letter:committed",     // the ledger row is committed, the message is unacknowledged
		"dead-letter:decided",       // the same, after a batch
	}
}

// Events returns the additional points of an engine replica between an event and its executions.
func Events() []string {
	return []string{
		"events:before-commit", // the enforcements are written, not committed
		"events:committed",     // the enforcements are committed, nothing is published
		"inbox:before-ack",     // events or enforcements are committed, their messages are unacknowledged
	}
}

// Workflows returns the additional points of an engine replica that advances workflows.
func Workflows() []string {
	return []string{
		"advancement:committed", // an advance is committed, the next is not begun
	}
}

// Inquiries returns the points of an engine replica when an inquiry times out.
func Inquiries() []string {
	return []string{
		"inquiry:before-commit", // the inquiry has expired, not committed
		"inquiry:committed",     // the expiry is committed, the workflow has not advanced
	}
}

// Worker returns the points of a worker, in the order of a run.
func Worker() []string {
	return []string{
		"worker:started",  // the row is running, the action is not
		"worker:ran",      // the action has ended, the row is still running
		"worker:ended",    // the row has ended, nothing is published
		"worker:reported", // the broker has confirmed the report
	}
}

// Takes returns the points of an operator's program that moves dead letters from the broker into the ledger.
func Takes() []string {
	return []string{
		"take:before-commit", // a page is written and not committed
		"take:committed",     // the page is committed, the messages are unacknowledged
		"take:acknowledged",  // the messages have left the broker
	}
}

// Triage returns the points of an operator's program that acts on rows of the ledger.
func Triage() []string {
	return []string{
		"triage:before-commit", // a decision and its message are written, not committed
		"triage:committed",     // the decision is committed, the message is not published
	}
}

// Names returns all points.
func Names() []string {
	return slices.Concat(Engine(), DeadLetters(), Events(), Workflows(), Inquiries(), Worker(), Takes(), Triage())
}

// Parse reads a plan: for each named point, the reach at which the process dies, counted from 1.
func Parse(plan string) (map[string]int, error) {
	at := map[string]int{}
	for part := range strings.SplitSeq(plan, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, nth := part, 1
		if last := strings.LastIndexByte(part, ':'); last > 0 {
			if n, err := strconv.Atoi(part[last+1:]); err == nil {
				name, nth = part[:last], n
			}
		}
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("there is no crash point %q; there are %s", name, strings.Join(Names(), ", "))
		}
		if nth < 1 {
			return nil, fmt.Errorf("crash point %q is reached for the first time, not for the %dth", name, nth)
		}
		at[name] = nth
	}
	return at, nil
}
