package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/attune-go/attune/core/store"
)

// unfiltered reports whether every inquiry matches except by status.
func (f *InquiryFilter) unfiltered() bool {
	return f.Execution == 0 && f.AssignedTo == "" && f.Action == "" && f.Assigned == "" && !f.Trouble && !f.worded() &&
		f.MaxAge == 0 && f.MinAge == 0 && f.MaxLeft == 0 && f.MinLeft == 0 &&
		len(f.Assignees)+len(f.NotAssignees)+len(f.IDs)+len(f.Or) == 0
}

// worded reports whether the filter has texts, which are matched row by row.
func (f *InquiryFilter) worded() bool {
	return len(f.Match)+len(f.Unmatch)+len(f.Tasks)+len(f.NotTasks)+len(f.Prompts)+len(f.NotPrompts)+len(f.Texts)+len(
		f.NotTexts) > 0
}

// inquirySearch is one alternative of a filter prepared for the database.
type inquirySearch struct {
	store.ViewInquiryIDsParams

	open, ended bool // which of them match
	plain       bool // filters by status only
}

// newInquirySearch resolves names; nil when no row can match.
func newInquirySearch(ctx context.Context, tx *store.Tx, f InquiryFilter) (*inquirySearch, error) {
	q := &inquirySearch{
		ViewInquiryIDsParams: store.ViewInquiryIDsParams{
			Statuses: list(f.Statuses), Execution: f.Execution, Pattern: Pattern(f.Action, false),
			Page: int64(cmp.Or(f.Limit, DefaultPage)), Ids: list(f.IDs), Assigned: f.Assigned, Trouble: f.Trouble,
			UnansweredSeconds: UnansweredAfter.Seconds(), Worded: f.worded(), MaxAge: f.MaxAge.Seconds(),
			MinAge: f.MinAge.Seconds(), MaxLeft: f.MaxLeft.Seconds(), MinLeft: f.MinLeft.Seconds(),
			Match: list(f.Match), Unmatch: list(f.Unmatch), Tasks: list(f.Tasks), NotTasks: list(f.NotTasks),
			Prompts: list(f.Prompts), NotPrompts: list(f.NotPrompts), Texts: list(f.Texts), NotTexts: list(f.NotTexts),
		},
		open:  len(f.Statuses) == 0 || slices.Contains(f.Statuses, InquiryPending),
		plain: f.unfiltered(),
	}
	q.ended = len(f.Statuses) == 0 || len(f.Statuses) > 1 || !q.open
	if f.AssignedTo != "" {
		id, err := resolveIdentity(ctx, tx, f.AssignedTo)
		if err != nil || id == 0 {
			return nil, err
		}
		q.AssignedTo = id
	}
	var err error
	if q.NotAssignees, err = resolveAll(ctx, tx, f.NotAssignees, resolveIdentity); err != nil {
		return nil, err
	}
	if q.Assignees, err = resolveAll(ctx, tx, f.Assignees, resolveIdentity); err != nil || len(f.Assignees) > 0 &&
		len(q.Assignees) == 0 {
		return nil, err
	}
	return q, nil
}

// resolveIdentity finds an identity by login or id; 0 if there is none.
func resolveIdentity(ctx context.Context, tx *store.Tx, text string) (int64, error) {
	row, err := tx.FindIdentity(ctx, text)
	if err == nil {
		return row.ID, nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("look for the identity %q: %w", text, err)
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, nil //nolint:nilerr // neither a login nor an id: nothing matches
	}
	return id, nil
}

// inquirySearches are the alternatives of a filter.
type inquirySearches []*inquirySearch

// inquiryHits are the ids of one part of the list. Rows beyond stop were not read or are on the next
// page; 0 is the end.
type inquiryHits struct {
	ids  []int64
	stop int64
	// full is true when the page is full, bounded when a search stopped early.
	full, bounded bool
}

// fill reads open inquiries, then ended ones.
func (searches inquirySearches) fill(ctx context.Context, tx *store.Tx, page *InquiryPage, from inquiryCursor) error {
	for _, open := range []bool{true, false} {
		if open && !from.open {
			continue
		}
		hits, err := searches.find(ctx, tx, open, from, int64(cmp.Or(page.Filter.Limit, DefaultPage)-len(page.List)))
		if err != nil {
			return err
		}
		found, err := readInquiries(ctx, tx, inquiryPrompt, hits.ids)
		if err != nil {
			return err
		}
		page.List = append(page.List, found...)
		if hits.full || hits.stop != 0 {
			page.Next, page.Bounded = inquiryCursor{open, hits.stop}.String(), hits.bounded
			return nil
		}
	}
	return nil
}

// find finds at most room open or ended ids.
func (searches inquirySearches) find(ctx context.Context, tx *store.Tx, open bool, from inquiryCursor,
	room int64,
) (*inquiryHits, error) {
	hits := &inquiryHits{}
	for _, q := range searches {
		if open && !q.open || !open && !q.ended {
			continue
		}
		one, err := q.find(ctx, tx, open, from, room)
		if err != nil {
			return nil, err
		}
		hits.ids, hits.full, hits.bounded = append(hits.ids, one.ids...), hits.full || one.full, hits.bounded ||
			one.bounded
		hits.stop = sooner(open, hits.stop, one.stop)
	}
	if len(searches) == 1 {
		return hits, nil
	}
	hits.ids = mergeIDs(open, hits.ids, hits.stop)
	if int64(len(hits.ids)) > room {
		hits.ids, hits.full, hits.stop = hits.ids[:room], true, 0
		if room > 0 {
			hits.stop = hits.ids[room-1]
		}
	}
	return hits, nil
}

// find searches one alternative.
func (q *inquirySearch) find(ctx context.Context, tx *store.Tx, open bool, from inquiryCursor,
	room int64,
) (*inquiryHits, error) {
	q.Open, q.After, q.Before, q.Page = open, 0, math.MaxInt64, room+1 // one more shows whether there are more
	if open {
		q.After = from.id
	} else if !from.open && from.id > 0 {
		q.Before = from.id
	}
	if len(q.Ids) > 0 {
		q.After, q.Before = max(q.After, slices.Min(q.Ids)-1), min(q.Before, slices.Max(q.Ids)+1)
	}
	if q.Scan = inquiryScan; q.plain && (open || len(q.Statuses) == 0) {
		q.Scan = q.Page // every row matches
	}
	row, err := tx.ViewInquiryIDs(ctx, q.ViewInquiryIDsParams)
	if err != nil {
		return nil, fmt.Errorf("search inquiries: %w", err)
	}
	hits := &inquiryHits{ids: row.Ids}
	switch {
	case int64(len(row.Ids)) > room:
		hits.ids, hits.full = row.Ids[:room], true
		if room > 0 {
			hits.stop = row.Ids[room-1]
		}
	case row.LookedAt >= q.Scan:
		hits.stop, hits.bounded = row.Last, true
	}
	return hits, nil
}
