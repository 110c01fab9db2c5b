package filter

import (
	"slices"
	"strings"

	"github.com/attune-go/attune/core/monitor"
)

// Inquiries are the fields for inquiries.
var Inquiries = Schema{
	{Name: "status", Kind: Word, Values: monitor.InquiryStatuses, Help: "one of its statuses"},
	{Name: "assigned", Kind: Text, Values: []string{anybody}, Help: "who is to answer, by login; anybody for all"},
	{Name: "action", Kind: Text, Help: "the action that asks, or its workflow's"},
	{Name: "task", Kind: Text, Help: "the task that asks"},
	{Name: "prompt", Kind: Within, Help: "the beginning of the question"},
	{Name: "age", Kind: Age, Help: "how long ago it was asked"},
	{Name: "left", Kind: Age, Help: "how much time is left for the answer"},
	{Name: "execution", Kind: ID, Help: "the execution or the workflow that asks"},
	{Name: "id", Kind: ID, Help: "its number"},
}

// anybody matches inquiries without an assignee.
const anybody = "anybody"

// ForInquiries turns a query into a filter of the database. A text without a field matches action, workflow, task and
// prompt, a number the id. An error is an *Error.
func ForInquiries(q *Query) (monitor.InquiryFilter, error) {
	return alternatives(q, addToInquiries, func(f *monitor.InquiryFilter) *[]monitor.InquiryFilter { return &f.Or })
}

func addToInquiries(f *monitor.InquiryFilter, t Term) (err error) {
	switch t.Field {
	case "":
		return addText(t, &f.IDs, &f.Texts, &f.NotTexts)
	case "status":
		f.Statuses, err = narrowed(t, monitor.InquiryStatuses, f.Statuses)
		return err
	case "assigned":
		return addAssignees(f, t)
	case "action":
		return addPattern(t, &f.Match, &f.Unmatch)
	case "task":
		return addPattern(t, &f.Tasks, &f.NotTasks)
	case "prompt":
		return addPattern(t, &f.Prompts, &f.NotPrompts)
	case "age":
		addAge(t, &f.MinAge, &f.MaxAge)
	case "left":
		if t.Not {
			return fail(t.Span, "write left> or left<: what is over has no time left")
		}
		addAge(t, &f.MinLeft, &f.MaxLeft)
	case "execution":
		var ids []int64
		if err := addIDs(t, &ids); err != nil {
			return err
		}
		if f.Execution != 0 || len(ids) > 1 {
			return fail(t.Span, "one execution at once")
		}
		f.Execution = ids[0]
	case "id":
		return addIDs(t, &f.IDs)
	}
	return nil
}

// addAssignees adds logins, or whether there is an assignee.
func addAssignees(f *monitor.InquiryFilter, t Term) error {
	if slices.ContainsFunc(t.Values, func(v string) bool { return v != "*" && strings.Contains(v, "*") }) {
		return fail(t.Span, "a login is named whole here")
	}
	switch {
	case len(t.Values) == 1 && (t.Values[0] == anybody || t.Values[0] == "*"):
		if f.Assigned != "" {
			return fail(t.Span, "one assigned:%s at once", anybody)
		}
		f.Assigned = monitor.ParentedNone
		if t.Not != (t.Values[0] == "*") {
			f.Assigned = monitor.ParentedAny
		}
	case slices.Contains(t.Values, anybody):
		return fail(t.Span, "write assigned:%s | assigned:…", anybody)
	case t.Not:
		f.NotAssignees = append(f.NotAssignees, t.Values...)
	case len(f.Assignees) > 0:
		return fail(t.Span, "one assigned: term at once; a comma joins logins")
	default:
		f.Assignees = t.Values
	}
	return nil
}
