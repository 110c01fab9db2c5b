package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/schema"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
)

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
		page.Faults = append(page.Faults, InquiryFault{Execution: r.Execution, ActionRef: r.ActionRef, At: r.At, Reason: r.Reason})
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
		ID: row.ID, Status: row.Status, Kind: InquiryOfResult, Prompt: row.Prompt, Execution: row.Execution, ExecutionStatus: row.ExecutionStatus,
		ActionRef: row.ActionRef, Workflow: row.Parent, WorkflowRef: row.ParentRef, WorkflowStatus: row.ParentStatus, Task: row.Task,
		AssignedTo: row.AssignedTo, Assignee: row.Assignee, HasSchema: row.HasSchema, Created: row.Created, Age: r.At.Sub(row.Created),
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
