package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

// The statuses of inquiries.
const (
	InquiryPending   = "pending"
	InquiryResponded = "responded"
	InquiryTimeout   = "timeout"
	InquiryCancelled = "cancelled"
)

// InquiryStatuses lists the statuses.
var InquiryStatuses = []string{InquiryPending, InquiryResponded, InquiryTimeout, InquiryCancelled}

// InquiryFilter selects inquiries. The zero value selects all.
type InquiryFilter struct {
	Statuses []string `json:"statuses,omitempty"`
	// Execution keeps inquiries of this execution, or of the tasks of this workflow.
	Execution int64 `json:"execution,omitempty"`
	// AssignedTo keeps inquiries to one identity, by login or id.
	AssignedTo string `json:"assigned_to,omitempty"`
	// Action keeps inquiries of actions or workflows whose ref matches; a star matches anything.
	Action string `json:"action,omitempty"`
	// Assignees and NotAssignees keep or exclude identities, by login or id. Assigned keeps
	// inquiries with or without an assignee.
	Assignees    []string `json:"assignees,omitempty"`
	NotAssignees []string `json:"not_assignees,omitempty"`
	Assigned     string   `json:"assigned,omitempty"`
	// Match are regular expressions that the ref of the action or its workflow must all match,
	// Unmatch must not match. Case does not matter. The others do the same for the task, the
	// beginning of the prompt, and all of these texts.
	Match      []string `json:"match,omitempty"`
	Unmatch    []string `json:"unmatch,omitempty"`
	Tasks      []string `json:"tasks,omitempty"`
	NotTasks   []string `json:"not_tasks,omitempty"`
	Prompts    []string `json:"prompts,omitempty"`
	NotPrompts []string `json:"not_prompts,omitempty"`
	Texts      []string `json:"texts,omitempty"`
	NotTexts   []string `json:"not_texts,omitempty"`
	// MaxAge and MinAge bound the age, MaxLeft and MinLeft the time left to answer, which is endless
	// without a timeout. 0 keeps all.
	MaxAge  time.Duration `json:"max_age_ns,omitempty"`
	MinAge  time.Duration `json:"min_age_ns,omitempty"`
	MaxLeft time.Duration `json:"max_left_ns,omitempty"`
	MinLeft time.Duration `json:"min_left_ns,omitempty"`
	// Trouble keeps timed-out inquiries, those with four fifths of their time used, and those
	// without a timeout older than UnansweredAfter.
	Trouble bool    `json:"trouble,omitempty"`
	IDs     []int64 `json:"ids,omitempty"`
	// Or are alternatives. Their own limits and alternatives are ignored.
	Or []InquiryFilter `json:"or,omitempty"`
	// Limit bounds a page; 0 means DefaultPage.
	Limit int `json:"limit,omitempty"`
}

// UnansweredAfter is the age from which an inquiry without a timeout is trouble.
const UnansweredAfter = 24 * time.Hour

// alternatives are the filter and those of Or, each alone.
func (f *InquiryFilter) alternatives() []InquiryFilter {
	all := append([]InquiryFilter{*f}, f.Or...)
	for i := range all {
		all[i].Or, all[i].Limit = nil, f.Limit
	}
	return all
}

// Check refuses an invalid filter, so that a mistyped one is never applied.
func (f *InquiryFilter) Check() error {
	if err := checkWords("status", f.Statuses, InquiryStatuses); err != nil {
		return err
	}
	if f.Limit < 0 || f.Execution < 0 {
		return fmt.Errorf("%w has a negative number", ErrFilter)
	}
	for i := range f.Or {
		if err := f.Or[i].Check(); err != nil {
			return err
		}
	}
	return nil
}

// The origins of inquiries.
const (
	InquiryOfTask   = "task"   // a core.ask
	InquiryOfResult = "result" // asked in the result of an execution
)

// Inquiry is a question to a person, as lists show it.
type Inquiry struct {
	ID     int64  `json:"id"`
	Status string `json:"status"`
	// Kind is task or result.
	Kind string `json:"kind"`
	// Prompt is the question. A list cuts it, with … at its end.
	Prompt string `json:"prompt"`
	// Execution asks it. Workflow is the execution of its workflow, if any.
	Execution       int64  `json:"execution"`
	ExecutionStatus string `json:"execution_status"`
	ActionRef       string `json:"action_ref"`
	Workflow        *int64 `json:"workflow"`
	WorkflowRef     string `json:"workflow_ref,omitempty"`
	WorkflowStatus  string `json:"workflow_status,omitempty"`
	Task            string `json:"task,omitempty"`
	// AssignedTo is the identity that shall answer, Assignee its login; nil for any.
	AssignedTo *int64 `json:"assigned_to"`
	Assignee   string `json:"assignee,omitempty"`
	// HasSchema says that the response must match a schema.
	HasSchema bool          `json:"has_schema"`
	Created   time.Time     `json:"created"`
	Age       time.Duration `json:"age_ns"`
	// TimeoutAt is the end of its time, nil without one. Left is the remaining time of an open one.
	TimeoutAt *time.Time     `json:"timeout_at"`
	Left      *time.Duration `json:"left_ns"`
	// Responder is the known name of the person, RespondedBy the identity that answered.
	RespondedAt *time.Time `json:"responded_at"`
	RespondedBy *int64     `json:"responded_by"`
	Responder   string     `json:"responder,omitempty"`
}

// Open reports whether it waits for an answer.
func (i *Inquiry) Open() bool { return i.Status == InquiryPending }

// For names who may answer.
func (i *Inquiry) For() string {
	switch {
	case i.AssignedTo == nil:
		return "anybody"
	case i.Assignee == "":
		return "identity " + strconv.FormatInt(*i.AssignedTo, 10)
	default:
		return i.Assignee
	}
}

// AskedBy is the task with its workflow, or the action.
func (i *Inquiry) AskedBy() string {
	switch {
	case i.WorkflowRef == "":
		return i.ActionRef
	case i.Task == "":
		return i.ActionRef + " for " + i.WorkflowRef
	default:
		return i.Task + " of " + i.WorkflowRef
	}
}

// InquiryFault is an inquiry that could not be opened.
type InquiryFault struct {
	Execution int64     `json:"execution"`
	ActionRef string    `json:"action_ref"`
	At        time.Time `json:"at"`
	Reason    string    `json:"reason"`
}

// InquiryPage is one page of inquiries: open ones first, the oldest first, then ended ones, the
// newest first.
type InquiryPage struct {
	Reading
	Filter InquiryFilter `json:"filter"`
	// From is the cursor of this page; empty at the beginning.
	From string    `json:"from,omitempty"`
	List []Inquiry `json:"list"`
	// Next is the cursor of the next page, which an empty page can have too; empty at the end.
	Next string `json:"next,omitempty"`
	// Bounded is true when the search stopped at its bound, so that more may match.
	Bounded bool `json:"bounded,omitempty"`
	// Open counts open inquiries, whatever the filter.
	Open Count `json:"open"`
	// Faults are the newest faults, on the first page of an unfiltered list.
	Faults []InquiryFault `json:"faults,omitempty"`
}

// InquiryDetail is everything about one inquiry.
type InquiryDetail struct {
	Reading
	Inquiry
	// ResponseSchema is the schema of the response, null for any.
	ResponseSchema json.RawMessage `json:"response_schema"`
	// Response is the answer without secrets, null without one.
	Response json.RawMessage `json:"response"`
	Updated  time.Time       `json:"updated"`
}

// Form is the form of the answer.
func (d *InquiryDetail) Form() *inquiry.AnswerForm { return inquiry.NewAnswerForm(d.ResponseSchema) }

// The bounds of reads about inquiries.
const (
	inquiryScan   = 5_000
	inquiryCount  = 10_000
	inquiryFaults = 10
	inquiryPrompt = 300
)

// Inquiries reads one page of matching inquiries from the cursor; empty is the beginning. A filtered
// search reads a bounded number of rows and says so.
func (m *Monitor) Inquiries(ctx context.Context, filter InquiryFilter, cursor string) (*InquiryPage, error) {
	page := &InquiryPage{Filter: filter, From: cursor, List: []Inquiry{}}
	if err := filter.Check(); err != nil {
		return page, err
	}
	from, err := parseInquiryCursor(cursor)
	if err != nil {
		return page, err
	}
	err = m.Read(ctx, "inquiries", &page.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
			return ErrUnmigrated
		}
		count, err := tx.CountOpenInquiries(ctx, inquiryCount)
		if err != nil {
			return fmt.Errorf("count open inquiries: %w", err)
		}
		page.Open = upTo(count.Open, inquiryCount)
		if err := readFaults(ctx, tx, page); err != nil {
			return err
		}
		var searches inquirySearches
		for _, f := range filter.alternatives() {
			search, err := newInquirySearch(ctx, tx, f)
			if err != nil {
				return err
			}
			if search != nil {
				searches = append(searches, search)
			}
		}
		return searches.fill(ctx, tx, page, from)
	})
	return page, err
}

// readFaults reads the faults for the first page of an unfiltered list.
func readFaults(ctx context.Context, tx *store.Tx, page *InquiryPage) error {
	f := page.Filter
	if page.From != "" || !f.unfiltered() {
		return nil
	}
	rows, err := tx.ViewInquiryFaults(ctx, inquiryFaults)
	if err != nil {
		return fmt.Errorf("read the questions that could not be asked: %w", err)
	}
	for _, r := range rows {
		page.Faults = append(page.Faults, InquiryFault(r))
	}
	return nil
}

// inquiryCursor is the position in the list: open ones continue above an id, ended ones below it.
type inquiryCursor struct {
	open bool
	id   int64 // 0 is the beginning
}

func (c inquiryCursor) String() string {
	if c.open {
		return "open-" + strconv.FormatInt(c.id, 10)
	}
	return "ended-" + strconv.FormatInt(c.id, 10)
}

func parseInquiryCursor(text string) (inquiryCursor, error) {
	if text == "" {
		return inquiryCursor{open: true}, nil
	}
	kind, number, _ := strings.Cut(text, "-")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || id < 0 || kind != "open" && kind != "ended" {
		return inquiryCursor{}, fmt.Errorf("%w has the cursor %q, which no page gave", ErrFilter, text)
	}
	return inquiryCursor{open: kind == "open", id: id}, nil
}

// readInquiries reads inquiries in the order of ids.
func readInquiries(ctx context.Context, tx *store.Tx, cut int32, ids []int64) ([]Inquiry, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := store.Rows[Inquiry](ctx, tx, store.ViewInquiries, cut, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d inquiries: %w", len(ids), err)
	}
	return list, nil
}

// Inquiry reads everything about one inquiry; ErrNotFound if there is none.
func (m *Monitor) Inquiry(ctx context.Context, id int64) (*InquiryDetail, error) {
	d := &InquiryDetail{}
	err := m.Read(ctx, "an inquiry", &d.Reading, func(ctx context.Context, tx *store.Tx, s Shape) error {
		if !s.Ours {
			return ErrUnmigrated
		}
		list, err := readInquiries(ctx, tx, WholeDocument, []int64{id})
		if err != nil {
			return err
		}
		forms, err := tx.ViewInquiryForms(ctx, []int64{id})
		if err != nil {
			return fmt.Errorf("read what inquiry %d asks for: %w", id, err)
		}
		if len(list) == 0 || len(forms) == 0 {
			return ErrNotFound
		}
		d.Inquiry, d.ResponseSchema, d.Updated = list[0], forms[0].ResponseSchema, forms[0].Updated
		d.Response = withoutSecrets(forms[0].ResponseSchema, forms[0].Response)
		return nil
	})
	return d, err
}

// withoutSecrets replaces secrets with markers. An unreadable response is null.
func withoutSecrets(form, response json.RawMessage) json.RawMessage {
	s, err := schema.Parse(form)
	if err != nil || !s.HasSecrets() {
		return response
	}
	var value any
	if jsonvalue.Decode(response, &value) != nil {
		return json.RawMessage(`null`)
	}
	public, _ := secret.Take(value, s.SecretPaths(value))
	out, err := jsonvalue.Encode(public)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return out
}
