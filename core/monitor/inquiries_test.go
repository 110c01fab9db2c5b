package monitor

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/lab/testkit"
)

func (b *testBundle) asked(t *testing.T, f InquiryFilter) []int64 {
	t.Helper()
	page, err := b.Inquiries(t.Context(), f, "")
	require.NoError(t, err)
	require.Empty(t, page.Next)
	ids := []int64{}
	for _, one := range page.List {
		ids = append(ids, one.ID)
	}
	return ids
}

func TestInquiriesAreListedOpenOnesFirst(t *testing.T) {
	b := setup(t, nil)
	executions, ids := b.AddInquiries(t)
	all := []int64{ids["task"], ids["result"], ids["alone"], ids["answered"], ids["expired"]}
	require.Equal(t, all, b.asked(t, InquiryFilter{}))
	require.Equal(t, all[:3], b.asked(t, InquiryFilter{Statuses: []string{"pending"}}))
	require.Equal(t, all[3:], b.asked(t, InquiryFilter{Statuses: []string{"responded", "timeout"}}))
	require.Equal(t, []int64{ids["task"], ids["result"], ids["answered"], ids["expired"]},
		b.asked(t, InquiryFilter{Execution: executions["workflow"]}))
	require.Equal(t, []int64{ids["expired"]}, b.asked(t, InquiryFilter{Execution: executions["expired"]}))
	require.Equal(t, []int64{ids["task"]}, b.asked(t, InquiryFilter{AssignedTo: "ada"}))
	require.Empty(t, b.asked(t, InquiryFilter{AssignedTo: "eve"}))
	require.Equal(t, []int64{ids["result"]}, b.asked(t, InquiryFilter{Action: "pk.act"}))
	require.Equal(t, []int64{ids["task"], ids["result"], ids["answered"], ids["expired"]},
		b.asked(t, InquiryFilter{Action: "pk.dep*"}))

	for limit := 1; limit <= 6; limit++ {
		var paged []int64
		for cursor, pages := "", 0; ; pages++ {
			require.Less(t, pages, 7)
			page, err := b.Inquiries(t.Context(), InquiryFilter{Limit: limit}, cursor)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page.List), limit)
			require.Equal(t, Count{Value: 3}, page.Open)
			for _, one := range page.List {
				paged = append(paged, one.ID)
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		require.Equal(t, all, paged, "in pages of %d", limit)
	}
	for _, cursor := range []string{"7", "open-", "ended--1", "x-1"} {
		_, err := b.Inquiries(t.Context(), InquiryFilter{}, cursor)
		require.ErrorIs(t, err, ErrFilter, cursor)
	}
	_, err := b.Inquiries(t.Context(), InquiryFilter{Statuses: []string{"open"}}, "")
	require.ErrorIs(t, err, ErrFilter)
}

// A filter selects the same inquiries as a check of every row, also by pages.
func TestInquiriesAreFilteredByTheDatabase(t *testing.T) {
	b := setup(t, nil)
	_, ids := b.AddInquiries(t)
	ada, err := b.Inquiry(t.Context(), ids["task"])
	require.NoError(t, err)
	for name, c := range map[string]struct {
		f    InquiryFilter
		want []string
	}{
		"match": {
			InquiryFilter{Match: []string{"^PK\\.deploy$"}},
			[]string{"task", "result", "answered", "expired"},
		},
		"unmatch":  {InquiryFilter{Unmatch: []string{"deploy"}}, []string{"alone"}},
		"assignee": {InquiryFilter{Assignees: []string{"ada", "eve"}}, []string{"task"}},
		"assignee by id": {
			InquiryFilter{Assignees: []string{strconv.FormatInt(*ada.AssignedTo, 10)}},
			[]string{"task"},
		},
		"nobody known": {InquiryFilter{Assignees: []string{"eve"}}, nil},
		"not assignee": {
			InquiryFilter{NotAssignees: []string{"ada"}},
			[]string{"result", "alone", "answered", "expired"},
		},
		"for anybody":  {InquiryFilter{Assigned: ParentedNone}, []string{"result", "alone", "answered", "expired"}},
		"for somebody": {InquiryFilter{Assigned: ParentedAny}, []string{"task"}},
		"task": {
			InquiryFilter{Tasks: []string{"^approve$"}, Statuses: []string{"pending"}},
			[]string{"task", "result"},
		},
		"prompt": {
			InquiryFilter{Prompts: []string{"DEPLOY"}, Statuses: []string{"pending"}},
			[]string{"task"},
		},
		"text":      {InquiryFilter{Texts: []string{"pk\\.act"}}, []string{"result"}},
		"left":      {InquiryFilter{MaxLeft: 2 * time.Hour}, []string{"task"}},
		"much left": {InquiryFilter{MinLeft: 2 * time.Hour}, []string{"result", "alone"}},
		"age": {InquiryFilter{
			MinAge: 30 * time.Minute, Statuses: []string{"pending"},
			MaxLeft: time.Hour * 2,
		}, []string{"task"}},
		"ids":     {InquiryFilter{IDs: []int64{ids["expired"], ids["alone"]}}, []string{"alone", "expired"}},
		"trouble": {InquiryFilter{Trouble: true}, []string{"expired"}},
		"either": {InquiryFilter{
			IDs: []int64{ids["expired"]},
			Or: []InquiryFilter{
				{Prompts: []string{"deploy"}, Statuses: []string{"pending"}},
				{IDs: []int64{ids["alone"]}},
			},
		}, []string{"task", "alone", "expired"}},
		"either, or none": {InquiryFilter{
			Assignees: []string{"eve"},
			Or:        []InquiryFilter{{Statuses: []string{"responded"}}},
		}, []string{"answered"}},
	} {
		var want []int64
		for _, name := range c.want {
			want = append(want, ids[name])
		}
		for limit := range 4 {
			c.f.Limit = limit
			var got []int64
			for cursor, pages := "", 0; ; pages++ {
				require.Less(t, pages, 9)
				page, err := b.Inquiries(t.Context(), c.f, cursor)
				require.NoError(t, err, name)
				for _, one := range page.List {
					got = append(got, one.ID)
				}
				if cursor = page.Next; cursor == "" {
					break
				}
			}
			require.Equal(t, want, got, "%s in pages of %d", name, limit)
		}
	}
	testkit.Exec(t, b.Store, `update inquiry set created = now() - interval '2 days' where id = any($1)`,
		[]int64{ids["alone"], ids["task"]})
	require.Equal(t, []int64{ids["task"], ids["alone"], ids["expired"]}, b.asked(t, InquiryFilter{Trouble: true}),
		"little time is left, or it waits for days")
	_, err = b.Inquiries(t.Context(), InquiryFilter{Or: []InquiryFilter{{Statuses: []string{"open"}}}}, "")
	require.ErrorIs(t, err, ErrFilter)
}

func TestAnInquiryHasItsTaskAndTimeout(t *testing.T) {
	b := setup(t, nil)
	executions, ids := b.AddInquiries(t)
	testkit.Exec(t, b.Store, `INSERT INTO inquiry_fault (execution, reason) VALUES ($1, 'the question is malformed')`,
		executions["workflow"])
	task, err := b.Inquiry(t.Context(), ids["task"])
	require.NoError(t, err)
	require.Equal(t, "deploy?", task.Prompt)
	require.Equal(t, InquiryOfTask, task.Kind)
	require.Equal(t, executions["workflow"], *task.Workflow)
	require.Equal(t, "pk.deploy", task.WorkflowRef)
	require.Equal(t, "approve", task.Task)
	require.Equal(t, "ada", task.Assignee)
	require.InDelta(t, time.Hour, task.Age, float64(time.Minute))
	require.InDelta(t, time.Hour, *task.Left, float64(time.Minute))
	require.JSONEq(t, `null`, string(task.Response))

	result, err := b.Inquiry(t.Context(), ids["result"])
	require.NoError(t, err)
	require.Equal(t, InquiryOfResult, result.Kind)
	require.Nil(t, result.Left)

	answered, err := b.Inquiry(t.Context(), ids["answered"])
	require.NoError(t, err)
	require.Contains(t, string(answered.Response), `"n":[18446744073709551617,1`+strings.Repeat("0", 400)+`]`)
	require.Equal(t, "ada", answered.Responder)
	require.Contains(t, string(answered.Response), `"user":"x"`)
	require.NotContains(t, string(answered.Response), "hidden")

	_, err = b.Inquiry(t.Context(), 999)
	require.ErrorIs(t, err, ErrNotFound)
	page, err := b.Inquiries(t.Context(), InquiryFilter{Statuses: []string{"pending"}}, "")
	require.NoError(t, err)
	require.Len(t, page.Faults, 1)
	require.Equal(t, "pk.deploy", page.Faults[0].ActionRef)
}

// Open inquiries are read by their index among many decided ones.
func TestListsOfInquiriesGoByTheirIndexes(t *testing.T) {
	b := setup(t, nil)
	testkit.Exec(t, b.Store, `WITH e AS (INSERT INTO execution (action_ref, status) SELECT 'pk.old', 'completed' FROM generate_series(1, 20000) RETURNING id)
		INSERT INTO inquiry (execution, prompt, status, settled) SELECT id, 'old', 'timeout', true FROM e`)
	b.AddInquiries(t)
	testkit.Exec(t, b.Store, `ANALYZE inquiry, execution`)
	none := []string{}
	p := store.ViewInquiryIDsParams{
		Statuses: none, Scan: 5000, Page: 50, Before: 1 << 62, Ids: []int64{}, Assignees: []int64{},
		NotAssignees: []int64{},
		Match:        none, Unmatch: none, Tasks: none, NotTasks: none, Prompts: none, NotPrompts: none, Texts: none,
		NotTexts: none,
	}
	for name, change := range map[string]func(*store.ViewInquiryIDsParams){
		"open": func(p *store.ViewInquiryIDsParams) { p.Open = true }, "ended": func(*store.ViewInquiryIDsParams) {},
		"of one": func(p *store.ViewInquiryIDsParams) { p.Execution = 7 },
		"worded": func(p *store.ViewInquiryIDsParams) {
			p.Worded, p.Open, p.Texts, p.Trouble = true, true, []string{"x"}, true
		},
	} {
		p := p
		change(&p)
		plan := strings.Join(testkit.Column[string](t, b.Store.Pool(), "EXPLAIN "+store.ViewInquiryIDs,
			p.Open, p.Execution, p.After, p.Scan, p.Before, p.Statuses, p.AssignedTo, p.Pattern,
			p.Ids, p.Assignees, p.NotAssignees, p.Assigned, p.MaxAge, p.MinAge, p.MaxLeft, p.MinLeft, p.Trouble,
			p.UnansweredSeconds, p.Worded,
			p.Prompts, p.NotPrompts, p.Tasks, p.NotTasks, p.Match, p.Unmatch, p.Texts, p.NotTexts, p.Page), "\n")
		require.NotRegexp(t, `Seq Scan on (inquiry|execution)\b`, plan, fmt.Sprint(name, "\n", plan))
	}
}
