package act

import "time"

// State is how far an operation has come.
type State string

// The states of an operation.
const (
	Planning State = "planning"
	Planned  State = "planned" // it waits to be confirmed
	Dropped  State = "dropped" // it was left before it was confirmed; nothing was done
	Running  State = "running"
	Done     State = "done"
	Partial  State = "partly" // less was done than was planned
	Failed   State = "failed"
)

// Operation is one act of this session from the moment it is asked for.
type Operation struct {
	ID    int64
	Order Order
	// Title names it in a line.
	Title string
	State State
	// Began is when it was asked for, Ran when it was confirmed, Ended when it
	// ended, all by the local clock.
	Began, Ran, Ended time.Time
	Reason            string
	Receipt           *Receipt
	// Err is why it failed, in one line.
	Err string
	// Remark is what else is to be said, such as that an answer came too late.
	Remark   string
	Progress *Progress
}

// Over reports whether nothing more will happen to it.
func (o *Operation) Over() bool {
	return o.State != Planning && o.State != Planned && o.State != Running
}
