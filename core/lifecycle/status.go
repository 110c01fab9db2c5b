package lifecycle

import (
	"fmt"
	"slices"
)

// Status is the state of an execution, spelled as the labels of the database
// type execution_status_enum. Note the two spellings that others rely on: the
// transitional "canceling" has one l, the terminal "cancelled" has two.
type Status string

// The labels of execution_status_enum, in the order of the type.
const (
	StatusRequested  Status = "requested"
	StatusScheduling Status = "scheduling"
	StatusScheduled  Status = "scheduled"
	StatusRunning    Status = "running"
	StatusCompleted  Status = "completed"
	StatusFailed     Status = "failed"
	StatusCanceling  Status = "canceling"
	StatusCancelled  Status = "cancelled"
	StatusTimeout    Status = "timeout"
	StatusAbandoned  Status = "abandoned"
)

// Statuses lists every status in the order of the database type, which is the
// order ORDER BY status uses.
var Statuses = []Status{
	StatusRequested, StatusScheduling, StatusScheduled, StatusRunning,
	StatusCompleted, StatusFailed, StatusCanceling, StatusCancelled,
	StatusTimeout, StatusAbandoned,
}

// TerminalStatuses lists the statuses that are final: no row ever leaves one.
var TerminalStatuses = []Status{
	StatusCompleted, StatusFailed, StatusCancelled, StatusTimeout, StatusAbandoned,
}

// SlotStatuses lists the statuses in which an execution that was handed to a
// worker holds its admission slot. A terminal holder is one whose release is
// still due; every other holder must be in one of these.
var SlotStatuses = []Status{StatusScheduled, StatusRunning, StatusCanceling}

// ParseStatus reads a status as the database or a message spells it. Messages
// of existing workers carry capitalised names ("Completed"), so case does not
// matter. An unknown word is an error that quotes it.
func ParseStatus(text string) (Status, error) {
	lower := lowerASCII(text)
	for _, s := range Statuses {
		if string(s) == lower {
			return s, nil
		}
	}
	return "", fmt.Errorf("unknown execution status %q", text)
}

// Terminal reports whether s is final.
func (s Status) Terminal() bool { return slices.Contains(TerminalStatuses, s) }

// HoldsSlot reports whether an execution in s that was handed to a worker holds its admission slot.
func (s Status) HoldsSlot() bool { return slices.Contains(SlotStatuses, s) }

// Succeeded reports whether s is the one terminal status that means success.
func (s Status) Succeeded() bool { return s == StatusCompleted }

// Valid reports whether s is one of the labels of the database type.
func (s Status) Valid() bool { return slices.Contains(Statuses, s) }

func lowerASCII(text string) string {
	out := []byte(text)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

// The statuses of a worker: the labels of worker_status_enum.
const (
	WorkerActive   = "active"
	WorkerInactive = "inactive"
	WorkerBusy     = "busy"
	WorkerError    = "error"
)
