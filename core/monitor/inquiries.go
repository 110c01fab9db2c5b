package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/inquiry"
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
	// Assignees keeps what is for one of these, given by login or by id, NotAssignees
	// what is for none of them. Assigned keeps what is for somebody, or for anybody.
	Assignees    []string `json:"assignees,omitempty"`
	NotAssignees []string `json:"not_assignees,omitempty"`
	Assigned     string   `json:"assigned,omitempty"`
	// Match are expressions that the ref of the action that asks, or of its workflow,
	// must contain, all of them; Unmatch those of which both must contain none; capitals
	// do not matter. Tasks and NotTasks are the same for the task that asks, Prompts and
	// NotPrompts for the beginning of the question, Texts and NotTexts for all of these
	// together.
	Match      []string `json:"match,omitempty"`
	Unmatch    []string `json:"unmatch,omitempty"`
	Tasks      []string `json:"tasks,omitempty"`
	NotTasks   []string `json:"not_tasks,omitempty"`
	Prompts    []string `json:"prompts,omitempty"`
	NotPrompts []string `json:"not_prompts,omitempty"`
	Texts      []string `json:"texts,omitempty"`
	NotTexts   []string `json:"not_texts,omitempty"`
	// MaxAge keeps what was asked within it, MinAge what was asked before; MaxLeft and
	// MinLeft keep what waits for an answer by the time that is left, which is endless
	// where there is no limit. Zero keeps all.
	MaxAge  time.Duration `json:"max_age_ns,omitempty"`
	MinAge  time.Duration `json:"min_age_ns,omitempty"`
	MaxLeft time.Duration `json:"max_left_ns,omitempty"`
	MinLeft time.Duration `json:"min_left_ns,omitempty"`
	// Trouble keeps what nobody has answered in time, what has used up four fifths of
	// its time, and what waits for more than InquiryPatience without a limit.
	Trouble bool `json:"trouble,omitempty"`
	// IDs keeps these; empty keeps all.
	IDs []int64 `json:"ids,omitempty"`
	// Or are further filters: what one of them selects is selected too. Their own
	// limits and alternatives are ignored.
	Or []InquiryFilter `json:"or,omitempty"`
	// Limit bounds a page; zero means DefaultPage.
	Limit int `json:"limit,omitempty"`
}

// InquiryPatience is how long a question without a limit waits before that is trouble.
const InquiryPatience = 24 * time.Hour

// alternatives are the filter and those of Or, each by itself.
func (f *InquiryFilter) alternatives() []InquiryFilter {
	all := append([]InquiryFilter{*f}, f.Or...)
	for i := range all {
		all[i].Or, all[i].Limit = nil, f.Limit
	}
	return all
}

// Check says what is wrong with a filter, so that a mistyped one is never applied as
// something else.
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

// Form is what a person is asked for.
func (d *InquiryDetail) Form() *inquiry.AnswerForm { return inquiry.NewAnswerForm(d.ResponseSchema) }

// The bounds of what is read about inquiries.
const (
	inquiryScan     = 5_000
	inquiryCount    = 10_000
	inquiryFaults   = 10
	inquiryPrompt   = 300
	inquiryPromptIn = 1 << 20 // of one alone
)

// Inquiries reads one page of the inquiries that match the filter, from a cursor that
// a page before gave on; an empty one begins. A filtered search looks at a bounded
// number of rows and says when it stopped there.
func (m *Monitor) Inquiries(ctx context.Context, filter InquiryFilter, cursor string) (*InquiryPage, error) {
	page := &InquiryPage{Filter: filter, From: cursor, List: []Inquiry{}}
	if err := filter.Check(); err != nil {
		return page, err
	}
	from, err := parseInquiryCursor(cursor)
	if err != nil {
		return page, err
	}
	err = m.Read(ctx, "inquiries", &page.Reading, func(ctx context.Context, tx *store.Tx, _ Shape) error {
		if err := inquiriesThere(ctx, tx); err != nil {
			return err
		}
		count, err := tx.CountOpenInquiries(ctx, inquiryCount)
		if err != nil {
			return fmt.Errorf("count open inquiries: %w", err)
		}
		page.Open = Count{Value: count.Open, AtLeast: count.Open >= inquiryCount}
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

func inquiriesThere(ctx context.Context, tx *store.Tx) error {
	there, err := tx.InquirySchema(ctx)
	if err != nil {
		return fmt.Errorf("look for what is kept of inquiries: %w", err)
	}
	if !there {
		return ErrUnmigrated
	}
	return nil
}

// readFaults reads the questions that could not be asked, for the first page of
// everything.
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

// inquiryCursor is where a list goes on: among the open ones above an id, or among
// the ended ones below it.
type inquiryCursor struct {
	open bool
	id   int64 // 0: from the beginning
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

// readInquiries reads the rows of ids, in their order.
func readInquiries(ctx context.Context, tx *store.Tx, r *Reading, cut int32, ids []int64) ([]Inquiry, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.ViewInquiries(ctx, cut, ids)
	if err != nil {
		return nil, fmt.Errorf("read %d inquiries: %w", len(ids), err)
	}
	list := make([]Inquiry, 0, len(rows))
	for i := range rows {
		list = append(list, inquiryOf(r, &rows[i]))
	}
	slices.SortFunc(list, func(x, y Inquiry) int { return slices.Index(ids, x.ID) - slices.Index(ids, y.ID) })
	return list, nil
}

func inquiryOf(r *Reading, row *store.ViewInquiriesRow) Inquiry {
	one := Inquiry{
		ID: row.ID, Status: row.Status, Kind: InquiryOfResult, Prompt: row.Prompt, Execution: row.Execution,
		ExecutionStatus: row.ExecutionStatus,
		ActionRef:       row.ActionRef, Workflow: row.Parent, WorkflowRef: row.ParentRef,
		WorkflowStatus: row.ParentStatus,
		Task:           row.Task,
		AssignedTo:     row.AssignedTo, Assignee: row.Assignee, HasSchema: row.HasSchema, Created: row.Created,
		Age:       r.At.Sub(row.Created),
		TimeoutAt: row.TimeoutAt, RespondedAt: row.RespondedAt, RespondedBy: row.RespondedBy, Responder: row.Responder,
	}
	if row.OnlyAsks {
		one.Kind = InquiryOfTask
	}
	if one.Open() && row.TimeoutAt != nil {
		left := max(row.TimeoutAt.Sub(r.At), 0)
		one.Left = &left
	}
	return one
}

// Inquiry reads everything about one inquiry; ErrNotFound if there is none.
func (m *Monitor) Inquiry(ctx context.Context, id int64) (*InquiryDetail, error) {
	d := &InquiryDetail{}
	err := m.Read(ctx, "an inquiry", &d.Reading, func(ctx context.Context, tx *store.Tx, _ Shape) error {
		if err := inquiriesThere(ctx, tx); err != nil {
			return err
		}
		list, err := readInquiries(ctx, tx, &d.Reading, inquiryPromptIn, []int64{id})
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

// withoutSecrets replaces what the schema calls secret by markers. What cannot be
// read is not shown.
func withoutSecrets(form, response json.RawMessage) json.RawMessage {
	s, err := schema.Parse(form)
	if err != nil || !s.HasSecrets() {
		return response
	}
	var value any
	if json.Unmarshal(response, &value) != nil {
		return json.RawMessage(`null`)
	}
	public, _ := secret.Take(value, s.SecretPaths(value))
	out, err := json.Marshal(public)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return out
}
