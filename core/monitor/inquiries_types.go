package monitor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The statuses of inquiries.
const (
	InquiryPending   = "pending"
	InquiryResponded = "responded"
	InquiryTimeout   = "timeout"
	InquiryCancelled = "cancelled"
)

// InquiryStatuses lists them.
var InquiryStatuses = []string{InquiryPending, InquiryResponded, InquiryTimeout, InquiryCancelled}

// InquiryFilter selects inquiries. The zero value selects all.
type InquiryFilter struct {
	// Statuses keeps these.
	Statuses []string `json:"statuses,omitempty"`
	// Execution keeps what this execution asks, or the tasks of this workflow.
	Execution int64 `json:"execution,omitempty"`
	// AssignedTo keeps what is for one identity, given by login or by id.
	AssignedTo string `json:"assigned_to,omitempty"`
	// Action keeps what is asked by actions, or in workflows, whose ref matches; a
	// star stands for anything.
	Action string `json:"action,omitempty"`
	// Limit bounds a page; zero means DefaultPage.
	Limit int `json:"limit,omitempty"`
}

// Check says what is wrong with a filter, so that a mistyped one is never applied as
// something else.
func (f *InquiryFilter) Check() error {
	for _, word := range f.Statuses {
		if !slices.Contains(InquiryStatuses, word) {
			return fmt.Errorf("%w names an unknown status %q: use one of %s", ErrFilter, word, strings.Join(InquiryStatuses, ", "))
		}
	}
	if f.Limit < 0 || f.Execution < 0 {
		return fmt.Errorf("%w has a negative number", ErrFilter)
	}
	return nil
}

// The ways in which a question comes about.
const (
	InquiryOfTask   = "task"   // a core.ask
	InquiryOfResult = "result" // asked in the result of an execution
)

// Inquiry is a question to a person as lists show it.
type Inquiry struct {
	ID     int64  `json:"id"`
	Status string `json:"status"`
	// Kind is task or result.
	Kind string `json:"kind"`
	// Prompt is the question; lists cut it short.
	Prompt string `json:"prompt"`
	// Execution asks it; Workflow is that of its workflow, nil outside of one.
	Execution       int64  `json:"execution"`
	ExecutionStatus string `json:"execution_status"`
	ActionRef       string `json:"action_ref"`
	Workflow        *int64 `json:"workflow"`
	WorkflowRef     string `json:"workflow_ref,omitempty"`
	WorkflowStatus  string `json:"workflow_status,omitempty"`
	Task            string `json:"task,omitempty"`
	// AssignedTo is the identity that is to answer, nil for anybody, and Assignee its
	// login.
	AssignedTo *int64 `json:"assigned_to"`
	Assignee   string `json:"assignee,omitempty"`
	// HasSchema says that not every response fits.
	HasSchema bool          `json:"has_schema"`
	Created   time.Time     `json:"created"`
	Age       time.Duration `json:"age_ns"`
	// TimeoutAt is until when it may be answered, nil for ever; Left is how long that
	// is, nil of one that is not open.
	TimeoutAt *time.Time     `json:"timeout_at"`
	Left      *time.Duration `json:"left_ns"`
	// RespondedAt is when it was answered, Responder by whom, as far as that is known,
	// and RespondedBy the identity in whose name.
	RespondedAt *time.Time `json:"responded_at"`
	RespondedBy *int64     `json:"responded_by"`
	Responder   string     `json:"responder,omitempty"`
}

// Open reports whether an answer is waited for.
func (i *Inquiry) Open() bool { return i.Status == InquiryPending }

// InquiryFault is a question that could not be asked.
type InquiryFault struct {
	Execution int64     `json:"execution"`
	ActionRef string    `json:"action_ref"`
	At        time.Time `json:"at"`
	Reason    string    `json:"reason"`
}

// InquiryPage is one page of inquiries: first the open ones, from the one that has
// waited for longest on, then the ended ones, the newest first.
type InquiryPage struct {
	Reading
	Filter InquiryFilter `json:"filter"`
	// From is the cursor that the page was read from, empty at the beginning.
	From string    `json:"from,omitempty"`
	List []Inquiry `json:"list"`
	// Next continues the list, also of a page without rows; empty at its end.
	Next string `json:"next,omitempty"`
	// Bounded is true when the search stopped at its bound before the page was full:
	// more may match beyond Next.
	Bounded bool `json:"bounded,omitempty"`
	// Open counts the open ones, whatever the filter.
	Open Count `json:"open"`
	// Faults are the newest questions that could not be asked, on the first page of an
	// unfiltered list.
	Faults []InquiryFault `json:"faults,omitempty"`
}

// InquiryDetail is everything about one inquiry.
type InquiryDetail struct {
	Reading
	Inquiry
	// ResponseSchema is what the response must look like, null for anything.
	ResponseSchema json.RawMessage `json:"response_schema"`
	// Response is what was answered, null if nothing was; what its schema calls secret
	// is not shown.
	Response json.RawMessage `json:"response"`
	Updated  time.Time       `json:"updated"`
}

// InquiryTerms lists the words that ParseInquiryFilter understands, for help texts.
var InquiryTerms = []string{"status:pending", "assigned:ada", "action:shop.*", "execution:700", "a bare word matches the action"}

// ParseInquiryFilter reads the filter that people type, such as "status:pending
// assigned:ada". Terms are joined by "and". A term it does not know is an error that
// quotes it, so that a mistyped filter is never applied as something wider.
func ParseInquiryFilter(text string) (InquiryFilter, error) {
	var f InquiryFilter
	for term := range strings.FieldsSeq(text) {
		name, value, named := strings.Cut(term, ":")
		switch {
		case !named && strings.ContainsAny(term, "<>="):
			return InquiryFilter{}, fmt.Errorf("unknown filter term %q", term)
		case !named:
			f.Action = "*" + term + "*"
		case value == "":
			return InquiryFilter{}, fmt.Errorf("filter term %q has no value", term)
		case name == "status":
			f.Statuses = append(f.Statuses, strings.Split(value, ",")...)
		case name == "action":
			f.Action = value
		case name == "assigned":
			f.AssignedTo = value
		case name == "execution":
			id, err := strconv.ParseInt(value, 10, 64)
			if err != nil || id < 1 {
				return InquiryFilter{}, fmt.Errorf("filter term %q needs an execution id", term)
			}
			f.Execution = id
		default:
			return InquiryFilter{}, fmt.Errorf("unknown filter term %q", term)
		}
	}
	return f, f.Check()
}
