// Package crashpoint names the moments between two effects at which a process
// may die. In a usual build Reach does nothing and costs nothing; built with the
// tag crashpoints it kills the process where ATTUNE_CRASH_AT says, as kill -9
// would: nothing is flushed, released or said.
//
//	ATTUNE_CRASH_AT=outbox:before-publish     when it comes there first
//	ATTUNE_CRASH_AT=batch:committed:3         when it comes there for the third time
//	ATTUNE_CRASH_AT=hot:before-ack:2,hot:after-ack:2
//	                                          whichever comes first
//
// ATTUNE_FREEZE_AT is read in the same way; there the process stands still, as
// SIGSTOP makes it, with everything in hand that it has locked and connected,
// until it gets SIGCONT.
//
// A plan that names an unknown point ends the process at its start: a crash
// that never happens would prove nothing.
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

// Engine returns the points that an engine replica passes, in the order of the
// path of a message.
func Engine() []string {
	return []string{
		"batch:locked",        // the queues are locked, nothing is decided
		"batch:before-commit", // everything is decided, nothing is written
		"batch:committed",     // it is true, and nobody has been told
		"outbox:before-publish",
		"outbox:after-publish",
		"outbox:before-delete",
		"hot:before-ack", // the batch is done, its messages are still the broker's
		"hot:after-ack",
	}
}

// Letters returns the points that an engine replica passes when it handles dead
// letters.
func Letters() []string {
	return []string{
		"letter:before-commit", // the ledger is written and not committed
		"letter:committed",     // the ledger has it, the letter is still the broker's
		"letter:decided",       // the same, after a batch
	}
}

// Events returns the points that an engine replica passes from an event to its
// executions, besides those of a batch.
func Events() []string {
	return []string{
		"events:before-commit", // the enforcements are written, not committed
		"events:committed",     // the same, and everybody does
		"inbox:before-ack",     // events or enforcements are done, their messages are still the broker's
	}
}

// Workflows returns the points that an engine replica passes when it leads workflows
// on, besides those of a batch.
func Workflows() []string {
	return []string{
		"advancement:committed", // what followed is true, and what follows from that was not begun
	}
}

// Inquiries returns the points that an engine replica passes when the time of a
// question is over.
func Inquiries() []string {
	return []string{
		"inquiry:before-commit", // the question has expired, not committed
		"inquiry:committed",     // everybody does, and the workflow has not gone on
	}
}

// Worker returns the points that a worker passes, in the order of a run.
func Worker() []string {
	return []string{
		"worker:started",  // the row is running, the action is not
		"worker:ran",      // the action has ended, the row has not
		"worker:ended",    // the row has ended, nobody has been told
		"worker:reported", // the broker has confirmed the report
	}
}

// Takes returns the points that an operator's program passes when it takes dead letters
// from the broker into the ledger.
func Takes() []string {
	return []string{
		"take:before-commit", // a page is written and not committed
		"take:committed",     // the ledger has it, the messages are still the broker's
		"take:acknowledged",  // they have left the broker
	}
}

// Triage returns the points that an operator's program passes when it acts on rows of
// the ledger.
func Triage() []string {
	return []string{
		"triage:before-commit", // a decision and its message are written, not committed
		"triage:committed",     // everybody does, and the message is still to be published
	}
}

// Names returns every point there is.
func Names() []string {
	return slices.Concat(Engine(), Letters(), Events(), Workflows(), Inquiries(), Worker(), Takes(), Triage())
}

// Parse reads a plan: for each point that it names, the reach at which the
// process dies, counted from 1.
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
