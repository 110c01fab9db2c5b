package workflows

import (
	"slices"

	"github.com/attune-go/attune/core/monitor"
)

// maxOpen bounds the open workflows that are read.
const maxOpen = 1_000

// reset drops the rows of an earlier filter.
func (v *Workflows) reset() {
	v.ended.Forget()
	v.open, v.env.Data.Workflows, v.limit = nil, nil, monitor.DefaultPage
	v.path, v.linked = nil, false
	v.focusOn(inList)
}

// Query is the filter that the database applies.
func (v *Workflows) Query() monitor.WorkflowFilter {
	q := v.query
	q.Trouble, q.Limit, q.Or = v.Problems(), v.limit, slices.Clone(q.Or)
	for i := range q.Or {
		q.Or[i].Trouble = v.Problems()
	}
	return q
}

// Below is the id below which ended workflows are read: the next page near the end of the list, one
// that has just ended, or the page on the screen. Zero reads the newest.
func (v *Workflows) Below() int64 {
	at := v.Table().Cursor()
	switch {
	case v.nearEnd() && v.ended.Next() != 0:
		return v.ended.Next()
	case v.ended.Before() != 0:
		return v.ended.Before()
	case at <= 0 || !v.byID():
		return 0
	}
	if first := &v.VisibleRows()[min(v.Table().Offset(), v.Len()-1)]; terminal(first) == 1 {
		return first.Execution + 1
	}
	return 0
}

// byID reports whether ended workflows are listed in the order in which they are read.
func (v *Workflows) byID() bool {
	return !v.Order().Reverse && (v.SortKey() == "running first" || v.SortKey() == "newest")
}

// more reports whether more workflows match than were read.
func (v *Workflows) more() bool {
	b := v.env.Data.Workflows
	return b != nil && (b.MoreOpen || v.ended.Next() != 0)
}

// nearEnd reports whether the cursor is near the last row and more workflows match.
func (v *Workflows) nearEnd() bool {
	at := v.Table().Cursor()
	return v.more() && (v.goOn || at > 0 && v.Len()-at < monitor.DefaultPage/4)
}

// merge takes over a page. A workflow that is no longer open may have ended below this page; it is
// read again.
func (v *Workflows) merge() {
	b := v.env.Data.Workflows
	if b == nil {
		return
	}
	open := b.List[:b.Open]
	for i := range v.open {
		id := v.open[i].Execution
		still := slices.ContainsFunc(open, func(w row) bool { return w.Execution == id })
		if unread := b.MoreOpen && (len(open) == 0 || id < open[len(open)-1].Execution); !still && !unread {
			v.ended.Missing(id)
		}
	}
	v.open = open
	if v.goOn && b.From != 0 && b.From == v.ended.Next() {
		v.goOn = false
		v.ended.Deepen()
	}
	v.ended.Merge(b.List[b.Open:], b.From, b.Next)
}
