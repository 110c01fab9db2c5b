package cancellation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-go/attune/core/store"
)

// MaxTree bounds the executions of one walk.
const MaxTree = 100_000

// ErrTooMany reports that a tree exceeds MaxTree. Another call continues with the remaining executions.
var ErrTooMany = fmt.Errorf("the tree has more than %d executions", MaxTree)

// maxSearches bounds the searches for new children at the end of a walk.
const maxSearches = 20

// maxTries bounds the decisions about one execution.
const maxTries = 10

// Walk returns executions page by page with their children: of a tree all, otherwise the tasks of workflows that
// their definition cancels too. It searches children after the processing of their parent, and at the end again
// until no new ones appear.
//
// Every execution is first in a page that is only withdrawn (Waiting), and again in a later one if a worker has it.
// The first page also stores the requests of all further waiting executions, which no engine starts then. So no slot
// that becomes free starts another one of the walk. It is not safe for concurrent use.
type Walk struct {
	tree    bool
	pending []int64        // to withdraw next, in this order
	held    []int64        // at workers, to stop when nothing is left to withdraw
	grown   []int64        // parents since the last search for children
	all     []int64        // all parents, once each
	parents map[int64]bool // the same
	seen    map[int64]int  // how often each was returned
	// searches counts the searches for new children of all executions.
	searches int
	most     int            // bounds the Waiting pages
	noted    int            // so many of the pending ones have had their turn of Request.later
	later    []int64        // Request.later of the page that Next returned
	stored   map[int64]bool // Request.stored
	// Waiting is the Request.Waiting of the page that Next returned.
	Waiting bool
	// Stops bounds the pages that are not Waiting. Default MaxPage.
	Stops int
	// Stuck are executions that changed during every attempt.
	Stuck []int64
}

// NewWalk starts a walk at these executions.
func NewWalk(ids []int64, tree bool) *Walk {
	w := &Walk{
		tree: tree, most: MaxWaiting, Stops: MaxPage, parents: map[int64]bool{}, seen: make(map[int64]int, len(ids)),
		stored: map[int64]bool{},
	}
	w.add(ids)
	return w
}

func (w *Walk) add(ids []int64) {
	for _, id := range ids {
		if _, known := w.seen[id]; !known {
			w.seen[id] = 0
			w.pending = append(w.pending, id)
		}
	}
}

// Next returns the next page; an empty one is the end.
func (w *Walk) Next(ctx context.Context, queries *store.Queries) ([]int64, error) {
	for len(w.pending) == 0 && (len(w.grown) > 0 || len(w.held) == 0 && len(w.all) > 0) {
		more, err := w.grow(ctx, queries)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	from, most := &w.pending, w.most
	if len(w.pending) == 0 {
		from, most = &w.held, w.Stops
	}
	w.Waiting = len(w.pending) > 0 && (w.tree || len(w.seen) > 1) // a single one is in the way of no other
	n := min(len(*from), most)
	page := slices.Clone((*from)[:n])
	*from = (*from)[n:]
	w.later = nil
	if w.Waiting {
		w.later = w.pending[min(max(w.noted-n, 0), len(w.pending)):]
		w.noted = len(w.pending)
	}
	for _, id := range page {
		if w.seen[id]++; w.tree {
			w.parent(id)
		}
	}
	return page, nil
}

// Of returns a request for the page that Next returned.
func (w *Walk) Of(request Request) Request {
	request.Waiting, request.later, request.stored = w.Waiting, w.later, w.stored
	return request
}

// parent makes an execution one whose children belong to the walk.
func (w *Walk) parent(id int64) {
	if !w.parents[id] {
		w.parents[id] = true
		w.all, w.grown = append(w.all, id), append(w.grown, id)
	}
}

// Again queues executions for another decision. It adds the retries that were stopped in the place of executions of a
// tree, and stopped workflows: their children belong to the walk too. Executions without attempts left become Stuck.
func (w *Walk) Again(page *Page) {
	for _, r := range page.Results {
		if _, known := w.seen[r.Acting()]; r.Retry != 0 && !known {
			w.seen[r.Acting()] = 1
		}
		if r.Retry != 0 && w.tree || r.workflow && (r.Outcome == Cancelled || r.Outcome == Asked) {
			w.parent(r.Acting())
		}
	}
	w.held = append(w.held, page.Held...)
	for _, id := range page.stored {
		w.stored[id] = true
	}
	for _, id := range page.Again {
		if w.seen[id] >= maxTries {
			w.Stuck = append(w.Stuck, id)
			continue
		}
		w.pending = append(w.pending, id)
	}
}

// grow finds the children of newly returned executions or, without new ones, the children of all. It returns
// false at the end.
func (w *Walk) grow(ctx context.Context, queries *store.Queries) (bool, error) {
	parents := w.grown
	w.grown = nil
	if len(parents) == 0 {
		parents = w.all
		if w.searches++; w.searches > maxSearches {
			return false, errors.New(
				"children are created faster than they are cancelled: cancel the execution that creates them")
		}
	}
	before := len(w.pending)
	for part := range slices.Chunk(parents, MaxPage) {
		ids, err := queries.CancelChildren(ctx, part, !w.tree, MaxTree+1)
		if err != nil {
			return false, fmt.Errorf("find the children of %d executions: %w", len(part), err)
		}
		if w.add(ids); len(w.seen) > MaxTree {
			return false, ErrTooMany
		}
	}
	found := len(w.pending) > before
	// After a search for children of the new ones, one search for children of all ends the walk.
	return found || len(parents) < len(w.all) || w.searches == 0, nil
}

// Preview returns the results that Apply would have now, without locks or writes.
func Preview(ctx context.Context, queries *store.Queries, request Request, ids []int64) ([]Result, error) {
	p := &page{request: request.withDefaults()}
	var err error
	if p.targets, err = queries.CancelTargets(ctx, ids); err != nil {
		return nil, fmt.Errorf("find %d executions to cancel: %w", len(ids), err)
	}
	acting := make([]int64, len(p.targets))
	for i, target := range p.targets {
		acting[i] = target.ID
	}
	rows, err := queries.CancelFacts(ctx, p.request.StaleAfter.Seconds(), acting)
	if err != nil {
		return nil, fmt.Errorf("read %d executions to cancel: %w", len(ids), err)
	}
	p.facts = make(map[int64]store.CancelFactsRow, len(rows))
	for _, row := range rows {
		p.facts[row.ID] = row
	}
	for _, target := range p.targets {
		if row, ok := p.facts[target.ID]; ok {
			p.Results = append(p.Results, resultOf(target, row, Decide(factsOf(row), p.request.Grace)))
		}
	}
	p.missing(ids)
	return p.Results, nil
}
