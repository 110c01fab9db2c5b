package act

import "time"

// State is the state of an operation.
type State string

// The states of an operation.
const (
	Planning State = "planning"
	Planned  State = "planned" // waits for confirmation
	Dropped  State = "dropped" // closed without confirmation; nothing was done
	Running  State = "running"
	Done     State = "done"
	Partial  State = "partly" // less was done than planned
	Failed   State = "failed"
)

// Operation is an act or export of this session.
type Operation struct {
	ID      int64
	Request Request
	Title   string
	State   State
	// Began is the time of the request, Ran of the confirmation, Ended of the end, by the local clock.
	Began, Ran, Ended time.Time
	Reason            string
	Receipt           *Receipt
	// Err is the error in one line.
	Err string
	// Remark is a further note for the log, such as why it was stopped.
	Remark   string
	Progress *Progress
}

// Over reports whether the operation has reached its final state.
func (o *Operation) Over() bool {
	return o.State != Planning && o.State != Planned && o.State != Running
}
