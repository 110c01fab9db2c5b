package inquiries

import (
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

// A cursor is the part of the list and an id.
const (
	openPart  = "open-"
	endedPart = "ended-"
)

// reset drops the rows of an earlier filter.
func (v *Inquiries) reset() {
	v.open.Forget()
	v.ended.Forget()
	v.next, v.linked, v.detail, v.env.Data.Inquiries = "", 0, false, nil
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

// From is the cursor of the next reading: the next page near the end of the list, or an inquiry that
// has just been answered. An empty one reads the first page.
func (v *Inquiries) From() string {
	switch {
	case v.nearEnd():
		return v.next
	case v.ended.Before() != 0:
		return endedPart + strconv.FormatInt(v.ended.Before(), 10)
	default:
		return ""
	}
}

// nearEnd reports whether the cursor is near the last row and there are more.
func (v *Inquiries) nearEnd() bool {
	at := v.Table().Cursor()
	return v.next != "" && (v.goOn || at > 0 && v.Len()-at < monitor.DefaultPage/4)
}

func (v *Inquiries) cursorMoved(action keymap.Action) screen.Effect {
	v.linked = 0
	effect := screen.Effect{Handled: true, Take: action == keymap.MarkAll && v.next != ""}
	v.goOn = action == keymap.Bottom && v.Len() == 0
	if v.nearEnd() {
		effect.Refetch = screen.FeedInquiries
	}
	return effect
}

// Changed takes over new data.
func (v *Inquiries) Changed(feed screen.Feed) {
	d := v.env.Data
	switch {
	case feed == screen.FeedInquiry && d.Inquiry != nil:
		v.form = d.Inquiry.Form()
	case feed == screen.FeedInquiries && d.Inquiries != nil:
		v.merge(d.Inquiries)
		v.Rebuild(false)
	}
}

// merge takes over a page, which may begin in one part of the list and end in the other. An unread
// part stays. An inquiry that is no longer open may have ended below this page; it is read again.
func (v *Inquiries) merge(p *monitor.InquiryPage) {
	if v.goOn && p.From == v.next {
		v.goOn = false
		v.open.Deepen()
		v.ended.Deepen()
	}
	first := slices.IndexFunc(p.List, func(i row) bool { return !i.Open() })
	if first < 0 {
		first = len(p.List)
	}
	before := v.open.Rows()
	if !strings.HasPrefix(p.From, endedPart) {
		v.open.Merge(p.List[:first], -place(p.From, openPart), -place(p.Next, openPart))
	}
	if !strings.HasPrefix(p.Next, openPart) && p.Next != endedPart+"0" {
		v.ended.Merge(p.List[first:], place(p.From, endedPart), place(p.Next, endedPart))
	}
	for _, i := range before {
		if !slices.ContainsFunc(v.open.Rows(), func(other row) bool { return other.ID == i.ID }) {
			v.ended.Missing(i.ID)
		}
	}
	switch {
	case v.open.Next() != 0:
		v.next = openPart + strconv.FormatInt(-v.open.Next(), 10)
	case v.ended.Next() != 0:
		v.next = endedPart + strconv.FormatInt(v.ended.Next(), 10)
	case p.Next == endedPart+"0" && len(v.ended.Rows()) == 0:
		v.next = p.Next
	default:
		v.next = ""
	}
}

// place is the id of a cursor; zero if it belongs to the other part of the list.
func place(cursor, part string) int64 {
	id, ok := strings.CutPrefix(cursor, part)
	if !ok {
		return 0
	}
	return screen.Number(id)
}
