package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/screen"
)

// fakeFlows are the workflows and the questions of a fake installation.
type fakeFlows struct {
	board   *monitor.WorkflowBoard
	trees   map[int64]*monitor.WorkflowDetail
	page    *monitor.InquiryPage
	asked   map[int64]*monitor.InquiryDetail
	wfAsks  []monitor.WorkflowAsk
	wfQuery []monitor.WorkflowFilter
	inQuery []monitor.InquiryFilter
	// ended and many are long lists, read page by page; wfBelow and inFrom are from
	// where they were asked for.
	ended   []monitor.Workflow
	many    []monitor.Inquiry
	wfBelow []int64
	inFrom  []string
}

func (f *fakeSource) WorkflowBoard(ctx context.Context, filter monitor.WorkflowFilter,
	below int64,
) (*monitor.WorkflowBoard, error) {
	err := f.answer(ctx, screen.FeedWorkflows)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flows.wfQuery, f.flows.wfBelow = append(f.flows.wfQuery, filter), append(f.flows.wfBelow, below)
	if f.flows.ended == nil {
		return f.flows.board, err
	}
	b := *f.flows.board
	b.List, b.From, b.Next = slices.Clone(b.List[:b.Open]), below, 0
	for _, w := range f.flows.ended {
		if below != 0 && w.Execution >= below {
			continue
		}
		if len(b.List)-b.Open == monitor.DefaultPage {
			b.Next = b.List[len(b.List)-1].Execution
			break
		}
		b.List = append(b.List, w)
	}
	return &b, err
}

// Workflows lists the workflows of the board, running ones first.
func (f *fakeSource) Workflows(ctx context.Context, filter monitor.WorkflowFilter,
	cursor int64,
) (*monitor.Workflows, error) {
	err := f.answer(ctx, screen.FeedWorkflows)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flows.wfQuery = append(f.flows.wfQuery, filter)
	p := &monitor.Workflows{Filter: filter, From: cursor}
	for _, w := range slices.Concat(f.flows.board.List[:f.flows.board.Open], f.flows.ended) {
		if cursor != 0 && w.Execution >= cursor || len(filter.IDs) > 0 && !slices.Contains(filter.IDs, w.Execution) {
			continue
		}
		if len(p.List) == filter.Limit {
			p.Next = p.List[len(p.List)-1].Execution
			break
		}
		p.List = append(p.List, w)
	}
	return p, err
}

func (f *fakeSource) WorkflowTree(ctx context.Context, ask monitor.WorkflowAsk) (*monitor.WorkflowDetail, error) {
	err := f.answer(ctx, screen.FeedWorkflow)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flows.wfAsks = append(f.flows.wfAsks, ask)
	d := f.flows.trees[ask.Execution]
	if d == nil {
		return nil, errors.Join(err, monitor.ErrNotFound)
	}
	shown := *d
	shown.List = append([]monitor.WorkflowTask{}, d.List...)
	for i := range shown.List {
		t, most := &shown.List[i], 10
		if t.Name == ask.Task {
			most = ask.Children
		}
		t.Children = t.Children[:min(len(t.Children), most)]
	}
	return &shown, err
}

func (f *fakeSource) Inquiries(ctx context.Context, filter monitor.InquiryFilter,
	cursor string,
) (*monitor.InquiryPage, error) {
	err := f.answer(ctx, screen.FeedInquiries)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flows.inQuery, f.flows.inFrom = append(f.flows.inQuery, filter), append(f.flows.inFrom, cursor)
	if f.flows.many == nil {
		return f.flows.page, err
	}
	p := *f.flows.page
	p.List, p.From, p.Next = nil, cursor, ""
	_, number, _ := strings.Cut(cursor, "-")
	id, _ := strconv.ParseInt(number, 10, 64) // without a cursor it is zero
	for _, i := range f.flows.many {          // the open ones rising, then the others falling
		if len(filter.IDs) > 0 && !slices.Contains(filter.IDs, i.ID) {
			continue
		}
		past := strings.HasPrefix(cursor, "ended-")
		if i.Open() && (past || i.ID <= id) || !i.Open() && past && id != 0 && i.ID >= id {
			continue
		}
		if len(p.List) == cmp.Or(filter.Limit, monitor.DefaultPage) {
			p.Next = map[bool]string{
				true:  "open-",
				false: "ended-",
			}[i.Open()] + strconv.FormatInt(p.List[len(p.List)-1].ID, 10)
			if last := p.List[len(p.List)-1]; last.Open() && !i.Open() {
				p.Next = "ended-0"
			}
			break
		}
		p.List = append(p.List, i)
	}
	return &p, err
}

func (f *fakeSource) Inquiry(ctx context.Context, id int64) (*monitor.InquiryDetail, error) {
	err := f.answer(ctx, screen.FeedInquiry)
	if d := f.flows.asked[id]; d != nil {
		return d, err
	}
	return nil, errors.Join(err, monitor.ErrNotFound)
}

// sampleFlows are the workflows of the design, with a question that one of them asks.
func sampleFlows(reading monitor.Reading) fakeFlows {
	row := func(id int64, ref, status string, done, failed, total int64, lasted time.Duration) monitor.Workflow {
		w := monitor.Workflow{
			Execution: id, ID: id - 800_000, ActionRef: ref, Status: status, Created: *ago(lasted + time.Second),
			StartedAt: ago(lasted), Current: []string{},
			Tasks: monitor.WorkflowCounts{Total: total, Completed: done, Failed: failed},
		}
		if status != "running" {
			w.StartedAt, w.FinishedAt = ago(lasted+time.Minute), ago(time.Minute)
		}
		return w
	}
	nightly := row(884050, "etl.nightly", "running", 1, 0, 5, 9*time.Minute+40*time.Second)
	nightly.Current = []string{"fetch", "approve", "audit"}
	onboard := row(883990, "hr.onboard_user", "running", 2, 0, 5, 62*time.Minute)
	onboard.Paused, onboard.PauseReason = true, "new prices (by bob@ops-1)"
	weekly := row(883977, "report.weekly", "failed", 4, 1, 5, 12*time.Minute)
	weekly.Error = "render failed: out of paper"
	nested := row(884070, "audit.check", "running", 0, 0, 1, 2*time.Minute)
	list := []monitor.Workflow{
		nightly, onboard, weekly, row(883970, "etl.hourly", "completed", 6, 0, 6, 131*time.Second),
		row(883911, "etl.hourly", "completed", 6, 0, 6, 128*time.Second),
	}
	f := fakeFlows{
		board: &monitor.WorkflowBoard{Reading: reading, List: list, Open: 2},
		trees: map[int64]*monitor.WorkflowDetail{884050: sampleTree(reading, nightly)},
		page:  &monitor.InquiryPage{Reading: reading, Open: monitor.Count{Value: 2}},
		asked: map[int64]*monitor.InquiryDetail{},
	}
	for _, w := range append(list[1:], nested) {
		f.trees[w.Execution] = &monitor.WorkflowDetail{Reading: reading, Workflow: w, List: []monitor.WorkflowTask{
			{
				Name: "only", Type: "action", Action: "core.echo", Status: "completed", Says: "completed",
				StartedAt: w.StartedAt, FinishedAt: w.FinishedAt, Made: 1,
				Children: []monitor.WorkflowChild{{
					Execution: w.Execution + 1, Status: "completed", Attempt: 1,
					Created: w.Created, StartedAt: w.StartedAt, FinishedAt: w.FinishedAt,
				}},
			},
		}, Why: []string{"It ended as " + w.Status + "."}}
	}
	for _, one := range sampleInquiries(reading) {
		f.asked[one.ID] = one
		short := one.Inquiry
		f.page.List = append(f.page.List, short)
	}
	return f
}

func sampleTree(reading monitor.Reading, w monitor.Workflow) *monitor.WorkflowDetail {
	child := func(id, index int64, status string, began time.Duration, worker string) monitor.WorkflowChild {
		c := monitor.WorkflowChild{
			Execution: id, Status: status, Attempt: 1, Created: *ago(began + 20*time.Second), StartedAt: ago(began),
			WorkerName: worker, ActionRef: "core.http_request",
		}
		if index >= 0 {
			c.Index = new(index)
		}
		if worker != "" {
			c.WorkerID = ptr(7)
		}
		return c
	}
	list, asks, nested := child(884051, -1, "completed", 9*time.Minute+40*time.Second, ""), child(884060, -1, "running",
		3*time.Minute, ""), child(884070, -1, "running", 2*time.Minute, "")
	list.FinishedAt, asks.Inquiry, nested.Nested = ago(9*time.Minute+38*time.Second), 41, true
	waits, done, failed := child(884160, 1, "requested", 9*time.Minute, ""), child(884170, 2, "completed",
		9*time.Minute, ""), child(884301, 3, "failed", 9*time.Minute, "worker-node-02")
	waits.StartedAt, done.FinishedAt, failed.FinishedAt = nil, ago(8*time.Minute+42*time.Second), ago(4*time.Minute)
	failed.Error, failed.Attempt = "Worker queue TTL expired", 4
	return &monitor.WorkflowDetail{
		Reading: reading, Workflow: w, Definition: "etl.nightly", Version: 7, Cancellation: "allow_finish",
		Variables: []byte(
			`{"date": "2026-11-20", "list": [1, 2, 3, 4], "token": {"$attune_secret": true}, "api_key": "hidden-one"}`),
		List: []monitor.WorkflowTask{
			{
				Name: "list", Type: "action", Action: "etl.list", Status: "completed", Says: "completed",
				After: []string{"fetch"}, Publishes: []string{"list"}, StartedAt: list.StartedAt,
				FinishedAt: list.FinishedAt, Made: 1, Children: []monitor.WorkflowChild{list},
			},
			{
				Name: "fetch", Type: "action", Action: "core.http_request", Status: "running",
				Says: "running 2/4 (1 failed)", List: true, Concurrency: 4,
				Before: []string{"list"}, After: []string{"load"}, Join: 1, Retry: "up to 3 times, after 2s",
				Attempts: 4, Items: &monitor.WorkflowItems{Total: 4, Made: 4, Succeeded: 1, Failed: 1},
				StartedAt: ago(9 * time.Minute), Made: 4,
				Children: []monitor.WorkflowChild{child(884101, 0, "running", 9*time.Minute+12*time.Second,
					"worker-node-02"), waits, failed, done},
			},
			{
				Name: "approve", Type: "action", Action: "core.ask", Status: "running", Says: "running",
				Why: "waits for the answer to inquiry 41", StartedAt: asks.StartedAt, Made: 1,
				Children: []monitor.WorkflowChild{asks},
			},
			{
				Name: "audit", Type: "workflow", Action: "audit.check", Status: "running", Says: "running",
				StartedAt: nested.StartedAt, Made: 1, Children: []monitor.WorkflowChild{nested},
			},
			{
				Name: "load", Type: "action", Action: "etl.load", Says: "not reached",
				Before: []string{"fetch", "approve"}, Join: 2,
			},
		},
		Log: []monitor.WorkflowDecision{
			{Version: 1, At: *ago(9 * time.Minute), Lines: []string{"begins with list"}},
			{Version: 2, At: *ago(8 * time.Minute), Lines: []string{"list completed: fetch is started over 4 items"}},
		},
		Why: []string{
			"fetch[0] runs on worker-node-02, for 9m12s. The worker's last heartbeat was 4m11s ago, later than the 1m30s it may take.",
			"fetch[1] waits in queue core.http_request: place 1 of 612, normal lane, for 9m. 4 of 4 slots are taken. fetch[0] of this workflow holds a slot of it.",
			"approve waits for the answer to inquiry 41.",
			"audit is a workflow itself, 884070, which is running.",
		},
	}
}

func sampleInquiries(reading monitor.Reading) []*monitor.InquiryDetail {
	one := func(id int64, status, prompt, form string, age time.Duration) *monitor.InquiryDetail {
		return &monitor.InquiryDetail{
			Reading: reading, ResponseSchema: json.RawMessage(form), Response: json.RawMessage("null"),
			Updated: *ago(age),
			Inquiry: monitor.Inquiry{
				ID: id, Status: status, Kind: monitor.InquiryOfTask, Prompt: prompt, Execution: 884060,
				ExecutionStatus: "running", ActionRef: "core.ask",
				Workflow: ptr(884050), WorkflowRef: "etl.nightly", WorkflowStatus: "running", Task: "approve",
				Created: *ago(age), Age: age,
			},
		}
	}
	deploy := one(41, monitor.InquiryPending, "Shall the nightly load go on although one of four sources is missing? The rows of yesterday stay until it does, and the reports of the morning are made of them.",
		`{"go_on": {"type": "boolean", "required": true, "description": "load what is there", "position": 1},
		  "source": {"type": "string", "enum": ["old", "new"], "position": 2},
		  "rows": {"type": "integer", "minimum": 1, "position": 3},
		  "note": {"type": "string", "maxLength": 200, "position": 4},
		  "more": {"type": "object", "position": 5},
		  "token": {"type": "string", "secret": true, "position": 6}}`, 3*time.Minute)
	deploy.AssignedTo, deploy.Assignee, deploy.HasSchema = ptr(3), "ada", true
	left := 17 * time.Minute
	deploy.TimeoutAt, deploy.Left = ago(-left), &left
	open := one(42, monitor.InquiryPending, "Which host?", "null", 2*time.Hour)
	open.Execution, open.ActionRef, open.Workflow, open.WorkflowRef, open.Task, open.Kind = 884200, "ops.restart", nil,
		"", "", monitor.InquiryOfResult
	answered := one(40, monitor.InquiryResponded, "Deploy 1.4?", `{"ok": {"type": "boolean"}}`, 26*time.Hour)
	answered.RespondedAt, answered.Responder, answered.Response = ago(25*time.Hour), "bob@ops-1",
		json.RawMessage(`{"ok": true}`)
	return []*monitor.InquiryDetail{
		deploy, open, answered,
		one(39, monitor.InquiryTimeout, "Anybody there?", "null", 50*time.Hour),
	}
}

// hugeFlows are more workflows and questions than any screen holds, one of them with
// a list of many items.
func hugeFlows(rows int) fakeFlows {
	f := sampleFlows(monitor.Reading{At: frozen})
	tree := f.trees[884050]
	each := &tree.List[1]
	each.Children, each.Made, each.Items = nil, int64(rows), &monitor.WorkflowItems{
		Total: int64(rows),
		Made:  int64(rows), Succeeded: int64(rows) - 1, Failed: 1,
	}
	for i := range rows {
		each.Children = append(each.Children,
			monitor.WorkflowChild{
				Execution: int64(900_000 + i), Index: new(int64(i)), Status: "completed", Attempt: 1,
				Created: *ago(time.Minute), StartedAt: ago(time.Minute), FinishedAt: ago(time.Second),
			})
		w := f.board.List[i%5]
		w.Execution, w.ActionRef = int64(800_000-i), fmt.Sprintf("pack.flow_%d", i)
		f.board.List = append(f.board.List, w)
		q := f.page.List[0]
		q.ID = int64(1000 + i)
		f.page.List = append(f.page.List, q)
	}
	return f
}

// hostileFlows try to break out of their cells.
func hostileFlows(evil string) fakeFlows {
	f := sampleFlows(monitor.Reading{At: frozen})
	for i := range f.board.List {
		w := &f.board.List[i]
		w.ActionRef, w.Error, w.PauseReason, w.Current = evil, evil, evil, []string{evil}
	}
	for _, d := range f.trees {
		d.ActionRef, d.PauseReason, d.Paused, d.Why, d.Unreadable = evil, evil, true, []string{evil, evil}, evil
		d.Variables = json.RawMessage(`{"k": "\u001b[31mx` + "\u202e" + `"}`)
		d.Within = &monitor.WithinWorkflow{Execution: 1, Task: evil}
		for i := range d.List {
			t := &d.List[i]
			t.Name, t.Why, t.Says, t.Action, t.Retry, t.Publishes, t.Before, t.After = evil, evil, evil, evil, evil,
				[]string{evil}, []string{evil}, []string{evil}
			for j := range t.Children {
				t.Children[j].Error, t.Children[j].WorkerName, t.Children[j].ActionRef = evil, evil, evil
			}
		}
		for i := range d.Log {
			d.Log[i].Lines = []string{evil}
		}
	}
	for i := range f.page.List {
		q := &f.page.List[i]
		q.Prompt, q.ActionRef, q.Assignee, q.WorkflowRef, q.Task = evil, evil, evil, evil, evil
	}
	for _, d := range f.asked {
		d.Prompt, d.ActionRef, d.Assignee, d.WorkflowRef, d.Task, d.Responder, d.ExecutionStatus = evil, evil, evil,
			evil, evil, evil, evil
		form, _ := json.Marshal(map[string]any{evil: map[string]any{
			"type": "string", "description": evil,
			"default": evil, "enum": []string{evil},
		}})
		d.ResponseSchema, d.Response = form, form
	}
	f.page.Faults = []monitor.InquiryFault{{Execution: 7, ActionRef: evil, At: frozen, Reason: evil}}
	return f
}

// noFlows is an installation without any.
func noFlows(reading monitor.Reading) fakeFlows {
	return fakeFlows{board: &monitor.WorkflowBoard{Reading: reading}, page: &monitor.InquiryPage{Reading: reading}}
}
