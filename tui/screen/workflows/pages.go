package workflows

import (
	"slices"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
)

// database is the filter, which the database applies.
func (v *Workflows) database() *list.Database {
	return &list.Database{
		Schema: filter.Workflows,
		Ask: func(q *filter.Query) error {
			asked, err := filter.ForWorkflows(q)
			if err == nil {
				v.query = asked
			}
			return err
		},
	}
}

// forget drops what was read for another question.
func (v *Workflows) forget() {
	v.ended.Forget()
	v.live, v.env.Data.Workflows, v.limit = nil, nil, monitor.DefaultPage
	v.path, v.guest = nil, false
	v.focusOn(inList)
}

// known lists the values of a field that were read lately.
func (v *Workflows) known(field string) []string {
	var known screen.Distinct
	for i := range v.VisibleRows() {
		w := &v.VisibleRows()[i]
		switch field {
		case "action":
			known.Add(w.ActionRef)
		case "task":
			known.Add(w.Current...)
		}
	}
	return known.List()
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

// Below is the id below which those that have ended are read: those beyond the last
// one that is known when the operator comes near it, one that has just ended, or the
// ones in sight. Zero begins with the newest.
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
	if first := &v.VisibleRows()[min(v.Table().Offset(), v.Len()-1)]; over(first) == 1 {
		return first.Execution + 1
	}
	return 0
}

// byID reports whether those that have ended are listed as they are read.
func (v *Workflows) byID() bool {
	return !v.Order().Reverse && (v.SortKey() == "running first" || v.SortKey() == "newest")
}

// more reports whether further workflows match than were read.
func (v *Workflows) more() bool {
	b := v.env.Data.Workflows
	return b != nil && (b.MoreOpen || v.ended.Next() != 0)
}

// nearEnd reports whether the end of what is loaded comes near and there is more.
func (v *Workflows) nearEnd() bool {
	at := v.Table().Cursor()
	return at > 0 && v.more() && v.Len()-at < monitor.DefaultPage/4
}

// merge takes over what was read. What was open and is not any more is looked for
// among those that have ended, whose page may not reach it.
func (v *Workflows) merge() {
	b := v.env.Data.Workflows
	if b == nil {
		return
	}
	open := b.List[:b.Open]
	for i := range v.live {
		id := v.live[i].Execution
		there := slices.ContainsFunc(open, func(w monitor.Workflow) bool { return w.Execution == id })
		if beyond := b.MoreOpen && (len(open) == 0 || id < open[len(open)-1].Execution); !there && !beyond {
			v.ended.Missing(id)
		}
	}
	v.live = open
	v.ended.Merge(b.List[b.Open:], b.From, b.Next)
}
