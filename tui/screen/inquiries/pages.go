package inquiries

import (
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/filter"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/list"
	"github.com/attune-go/attune/tui/screen"
)

// The two parts of the list, as cursors name them before an id.
const (
	openPart = "open-"
	overPart = "ended-"
)

// database is the filter, which the database applies.
func (v *Inquiries) database() *list.Database {
	return &list.Database{
		Schema: filter.Inquiries,
		Ask: func(q *filter.Query) error {
			asked, err := filter.ForInquiries(q)
			if err == nil {
				v.query = asked
			}
			return err
		},
	}
}

// forget drops what was read for another question.
func (v *Inquiries) forget() {
	v.open.Forget()
	v.over.Forget()
	v.next, v.wanted, v.detail, v.env.Data.Inquiries = "", 0, false, nil
}

// Query is the filter that the database applies.
func (v *Inquiries) Query() monitor.InquiryFilter {
	q := v.query
	q.Trouble, q.Or = v.Problems(), slices.Clone(q.Or)
	for i := range q.Or {
		q.Or[i].Trouble = q.Trouble
	}
	return q
}

// From is the cursor that the list is read from: beyond the last one that is known
// when the operator comes near it, or where one is looked for that was answered just
// now. An empty one begins.
func (v *Inquiries) From() string {
	switch {
	case v.nearEnd():
		return v.next
	case v.over.Before() != 0:
		return overPart + strconv.FormatInt(v.over.Before(), 10)
	default:
		return ""
	}
}

// nearEnd reports whether the end of what is loaded comes near and there is more.
func (v *Inquiries) nearEnd() bool {
	at := v.Table().Cursor()
	return at > 0 && v.next != "" && v.Len()-at < monitor.DefaultPage/4
}

// moved asks for more when the end of what is loaded comes near.
func (v *Inquiries) moved(action keymap.Action) screen.Effect {
	v.wanted = 0
	effect := screen.Effect{Handled: true, Take: action == keymap.MarkAll && v.next != ""}
	if v.nearEnd() {
		effect.Refetch = screen.FeedInquiries
	}
	return effect
}

// Changed takes over a page. It begins in one part of the list and may end in the other;
// a part that it has not reached stays as it is. What waited and waits no more is
// looked for among those that are over, whose page may not reach it.
func (v *Inquiries) Changed(feed screen.Feed) {
	p := v.env.Data.Inquiries
	if feed != screen.FeedInquiries || p == nil {
		return
	}
	first := slices.IndexFunc(p.List, func(i monitor.Inquiry) bool { return !i.Open() })
	if first < 0 {
		first = len(p.List)
	}
	from, next := place(p.From), place(p.Next)
	before := v.open.Rows()
	if !strings.HasPrefix(p.From, overPart) {
		v.open.Merge(p.List[:first], -from, -next*part(p.Next, openPart))
	}
	if reached := !strings.HasPrefix(p.Next, openPart) && p.Next != overPart+"0"; reached {
		v.over.Merge(p.List[first:], from*part(p.From, overPart), next)
	}
	for _, i := range before {
		if !slices.ContainsFunc(v.open.Rows(), func(other monitor.Inquiry) bool { return other.ID == i.ID }) {
			v.over.Missing(i.ID)
		}
	}
	v.follow(p)
	v.Rebuild(false)
}

// follow finds where the list goes on: below the page, unless more is known there
// already.
func (v *Inquiries) follow(p *monitor.InquiryPage) {
	switch {
	case v.open.Next() != 0:
		v.next = openPart + strconv.FormatInt(-v.open.Next(), 10)
	case v.over.Next() != 0:
		v.next = overPart + strconv.FormatInt(v.over.Next(), 10)
	case p.Next == overPart+"0" && len(v.over.Rows()) == 0:
		v.next = p.Next
	default:
		v.next = ""
	}
}

// place is the id of a cursor; zero of an empty one.
func place(cursor string) int64 {
	_, number, _ := strings.Cut(cursor, "-")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// part is one for a cursor in a part of the list, else zero.
func part(cursor, of string) int64 {
	if strings.HasPrefix(cursor, of) {
		return 1
	}
	return 0
}
