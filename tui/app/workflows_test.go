package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
)

func TestTheTreeFollowsTheCursor(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("6")
	require.Contains(t, b.View(), "884050 etl.nightly  ● running")
	require.Contains(t, b.View(), "▲ fetch[0] runs on worker-node-02")
	b.press("j")
	require.Contains(t, b.View(), "883990 hr.onboard_user  ‖ paused new prices (by bob@ops-1)")
	b.press("j", "j")
	asks := b.source.flows.wfAsks
	require.Equal(t, []int64{884050, 883990, 883977, 883970},
		[]int64{asks[0].Execution, asks[1].Execution, asks[2].Execution, asks[3].Execution})
}

// Scrolling through a list reads few trees, and at last the selected one.
func TestRunningDownTheListAsksForOneTreeAtATime(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("6")
	_, first := b.Update(keyMsg("j"))
	require.NotNil(t, first)
	for range 2 {
		_, more := b.Update(keyMsg("j"))
		require.Nil(t, more, "one is being read")
	}
	b.run(first)
	asks := b.source.flows.wfAsks
	require.Equal(t, []int64{883990, 883970}, []int64{asks[1].Execution, asks[2].Execution})
	require.Len(t, asks, 3)
	require.Contains(t, b.View(), "883970 etl.hourly")
}

func TestAHiddenTreeIsNotRead(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("6", "v", "j", "j")
	require.NotContains(t, b.View(), "WHERE IT IS")
	require.Equal(t, 1, b.source.count(screen.FeedWorkflow))
	b.press("enter")
	require.Contains(t, b.View(), "884050 etl.nightly", "enter shows it again")
	require.Contains(t, b.View(), "883977 report.weekly  ✗ failed")
	b.press("esc", "v", "k", "W")
	require.Contains(t, b.View(), "WHY IS THE WORKFLOW WAITING?", "also from the question why")
}

func TestAnUnreadableTreeDelaysNothing(t *testing.T) {
	source := sample()
	source.fail = map[screen.Feed]error{screen.FeedWorkflow: errors.New("canceling statement due to statement timeout")}
	b := started(t, source, 80, 24)
	b.press("6")
	require.Equal(t, 1, source.count(screen.FeedWorkflow), "a failure is not repeated at once")
	require.Contains(t, b.View(), "workflow 884050 cannot be read")
	require.Contains(t, b.View(), "hr.onboard_user", "the list is there")
	source.fail = nil
	b.press("r")
	require.Contains(t, b.View(), "884050 etl.nightly  ● running")
}

func TestATreeIsFoldedAndOpened(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("6", "enter", "j")
	require.Contains(t, b.View(), "[3] 884301")
	b.press("h")
	require.NotContains(t, b.View(), "[3] 884301")
	require.Contains(t, b.View(), "▸ ● fetch")
	b.press("l", "j", "h")
	b.press("h")
	require.NotContains(t, b.View(), "[3] 884301", "from an item left leads to its task, which folds")
	b.press("0", "0")
	require.Contains(t, b.View(), "[3] 884301")
	b.press("j", "enter")
	require.Equal(t, keymap.InExecution, b.view)
	require.Equal(t, int64(884101), b.execution.ID())
	b.press("esc")
	require.Equal(t, keymap.InWorkflows, b.view, "back returns to the same tree")
	require.Contains(t, b.View(), "▶    ● [0] 884101")
	b.press("esc")
	require.Contains(t, b.View(), "▶   884050", "and then to the list")
	require.Equal(t, keymap.InWorkflows, b.view)
}

func TestAWorkflowWithinAWorkflowIsOpened(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("6", "enter", "G", "k", "enter")
	require.Contains(t, b.View(), "Workflows › 884050 › 884070")
	require.Contains(t, b.View(), "884070 audit.check")
	b.press("esc")
	require.Contains(t, b.View(), "884050 etl.nightly  ● running")
	b.press("esc")
	b.run(b.effect(screen.Open(keymap.InInquiries)))
	b.run(b.effect(screen.OpenWorkflow(884070)))
	require.Contains(t, b.View(), "884070 audit.check", "another view may send to one that no list shows")
	b.press("esc")
	require.Equal(t, keymap.InInquiries, b.view)
}

// A list of a thousand items is read and shown in parts.
func TestATaskOverManyItemsIsShownInParts(t *testing.T) {
	source := sample()
	source.flows = hugeFlows(1500)
	b := started(t, source, 140, 40)
	b.press("6", "enter", "j", "l", "G", "k", "k", "k")
	require.Contains(t, b.View(), "… 1490 more")
	b.press("enter")
	last := func() monitor.WorkflowAsk { return source.flows.wfAsks[len(source.flows.wfAsks)-1] }
	require.Equal(t, monitor.WorkflowAsk{Execution: 884050, Task: "fetch", Children: 100}, last())
	b.press("G", "k", "k", "k")
	require.Contains(t, b.View(), "… 1400 more")
	b.press("enter", "G", "k", "k", "k")
	require.Equal(t, 1000, last().Children)
	b.press("enter")
	require.Equal(t, keymap.InExecutions, b.view, "all of them are a list")
	require.Equal(t, "parent:884050", b.executions.Filter())
}

func TestWorkflowsAreFilteredByTheDatabase(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("6", "/")
	b.typed("status:nonsense")
	b.press("enter")
	require.Contains(t, b.View(), "status is one of")
	require.Empty(t, b.workflows.Filter(), "a wrong filter is not applied")
	b.press("esc", "/")
	b.typed("status:paused etl | failed>1")
	b.press("enter", "z")
	queries := b.source.flows.wfQuery
	last := queries[len(queries)-1]
	require.Equal(t, []string{"etl"}, last.Match)
	require.Equal(t, []string{"paused"}, last.Statuses)
	require.True(t, last.Trouble)
	require.Equal(t, monitor.DefaultPage, last.Limit)
	require.EqualValues(t, 2, last.Or[0].MinFailed)
	require.True(t, last.Or[0].Trouble, "every alternative is narrowed")
	require.Contains(t, b.View(), "running first · problems · /status:paused etl | failed>1")
	b.press("/")
	b.typed("task:fe")
	b.press("tab", "enter")
	require.Contains(t, b.workflows.Filter(), "task:fetch", "the names of tasks are completed")
}

// longFlows is an installation with many workflows and questions that are over.
func longFlows() *fakeSource {
	s := sample()
	b := *s.flows.board
	b.List = b.List[:b.Open]
	s.flows.board = &b
	for i := range int64(900) {
		s.flows.ended = append(s.flows.ended, monitor.Workflow{
			Execution: 800_000 - i, ActionRef: "etl.old",
			Status: "completed", Created: frozen, Current: []string{},
		})
	}
	open := func(id int64, status string) monitor.Inquiry {
		return monitor.Inquiry{ID: id, Status: status, Prompt: "Go on?", ActionRef: "core.ask", Created: frozen}
	}
	for i := range int64(300) {
		s.flows.many = append(s.flows.many, open(1_000+i, monitor.InquiryPending))
	}
	for i := range int64(500) {
		s.flows.many = append(s.flows.many, open(900-i, monitor.InquiryResponded))
	}
	return s
}

// unread reads again while the operator is idle, so that rows are sorted.
func (b *bundle) unread() {
	b.now = b.now.Add(10 * time.Second)
	b.run(b.refresh())
}

// The list itself sorts its loaded part in orders that the database does not have.
func TestTheTitleNamesAnOrderOfTheLoadedPart(t *testing.T) {
	b := started(t, longFlows(), 140, 40)
	for key, order := range map[string]string{"6": "4", "8": "3"} {
		b.press(key)
		require.NotContains(t, b.frame()[2], "ordered among themselves", key)
		b.press("s", order)
		require.Contains(t, b.frame()[2], "read, ordered among themselves", key)
	}
}

func TestEndedWorkflowsAreReadPageByPage(t *testing.T) {
	b := started(t, longFlows(), 100, 30)
	b.press("6")
	require.Equal(t, 202, b.workflows.Len())
	require.Contains(t, b.frame()[2], "· 202+")
	for range 6 {
		b.press("G")
	}
	require.Equal(t, 902, b.workflows.Len())
	require.Contains(t, b.frame()[2], "· 902")
	require.Equal(t, "799101", b.workflows.Key(901))
	b.press("r")
	require.Equal(t, "799101", b.workflows.Table().Key(), "the visible page is read again in its place")
	require.Equal(t, 902, b.workflows.Len())
	require.NotZero(t, b.source.flows.wfBelow[len(b.source.flows.wfBelow)-1])

	// A workflow that ends moves among the ended ones, however old it is.
	b.press("gg"[:1], "g")
	b.unshare()
	ended := b.source.flows.board.List[1]
	ended.Status, ended.Execution = "failed", 799_500
	board := *b.source.flows.board
	board.List = append([]monitor.Workflow{}, board.List...)
	board.List[1].Execution = 799_500
	b.source.flows.board = &board
	b.unread()
	require.Equal(t, "799500", b.workflows.Key(1))
	gone := board
	gone.List, gone.Open = board.List[:1], 1
	b.source.flows.board = &gone
	for i := range b.source.flows.ended {
		if b.source.flows.ended[i].Execution == 799_500 {
			b.source.flows.ended[i] = ended
		}
	}
	b.unread()
	b.unread()
	require.Equal(t, 901, b.workflows.Len())
	b.press("s", "4", "s", "4", "r")
	require.Equal(t, 901, b.workflows.Len(), "loaded rows stay in every order")
}

func TestQuestionsAreReadPageByPage(t *testing.T) {
	b := started(t, longFlows(), 100, 30)
	b.press("8")
	require.Equal(t, 200, b.inquiries.Len())
	require.Contains(t, b.View(), "more below: G loads them")
	for range 6 {
		b.press("G")
	}
	require.Equal(t, 800, b.inquiries.Len())
	require.Equal(t, "1000", b.inquiries.Key(0))
	require.Equal(t, "1299", b.inquiries.Key(299))
	require.Equal(t, "900", b.inquiries.Key(300), "closed ones follow, the newest first")
	require.Equal(t, "401", b.inquiries.Key(799))
	require.NotContains(t, b.View(), "more below")
	b.press("r")
	require.Equal(t, 800, b.inquiries.Len())

	// An answered inquiry moves from the waiting to the ended ones.
	b.unshare()
	many := b.source.flows.many
	answered := many[0]
	answered.Status = monitor.InquiryResponded
	b.source.flows.many = append(append(append([]monitor.Inquiry{}, many[1:300]...), answered), many[300:]...)
	b.press("gg"[:1], "g")
	b.unread()
	b.unread()
	require.Equal(t, 800, b.inquiries.Len())
	require.Equal(t, "1001", b.inquiries.Key(0))
	require.Equal(t, "1000", b.inquiries.Key(299))
}

func TestQuestionsAreFilteredAndNarrowedByTheDatabase(t *testing.T) {
	b := started(t, sample(), 100, 30)
	b.press("8", "/")
	b.typed("assigned:anybody prompt:ship !task:x")
	b.press("enter", "z")
	last := b.source.flows.inQuery[len(b.source.flows.inQuery)-1]
	require.Equal(t, monitor.ParentedNone, last.Assigned)
	require.Equal(t, []string{"ship"}, last.Prompts)
	require.Equal(t, []string{"^x$"}, last.NotTasks)
	require.True(t, last.Trouble)
	require.Contains(t, b.frame()[2], "waiting first · problems · /assigned:anybody")
	b.press("z")
	require.False(t, b.source.flows.inQuery[len(b.source.flows.inQuery)-1].Trouble)
	e := started(t, empty(), 100, 30)
	e.press("8", "z")
	require.Contains(t, e.View(), "No question waits for long, is due soon, or timed out.")
	e.press("/")
	e.typed("nobody")
	e.press("enter")
	require.Contains(t, e.View(), "No inquiry with a problem matches /nobody (z shows all).")
	e.press("6", "z")
	require.Contains(t, e.View(), "No workflow has failed, is paused")
}

func TestEmptyViewsNameTheNextStep(t *testing.T) {
	b := started(t, empty(), 80, 24)
	b.press("6")
	require.Contains(t, b.View(), "attune-executor run PACK.WORKFLOW")
	b.press("z")
	require.Contains(t, b.View(), "No workflow has failed, is paused")
	b.press("z", "/")
	b.typed("nobody")
	b.press("enter")
	require.Contains(t, b.View(), "No workflow matches /nobody.")
	b.press("8")
	require.Contains(t, b.View(), "core.ask")
}

func TestWorkflowsArePutInOrder(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("6")
	first := func() string { return strings.Fields(b.frame()[4])[1] }
	require.Equal(t, "884050", first())
	b.press("s", "4")
	require.Contains(t, b.frame()[4], "etl.hourly")
	b.press("s", "4")
	require.Contains(t, b.frame()[4], "report.weekly", "the same again reverses")
}

func TestActsOnWorkflowsAndTheirTasks(t *testing.T) {
	acts := &fakeActs{}
	b := acting(t, acts, 80, 24)
	b.press("6", "A")
	require.Contains(t, b.View(), "not now: it is not paused")
	b.press("p", "y")
	require.Equal(t, act.PauseWorkflow, acts.requests[0].Kind)
	require.Equal(t, int64(884050), acts.requests[0].Target.ID)
	b.press("esc", "enter", "j", "j", "j", "j", "j", "R")
	require.Equal(t, act.RetryTask, acts.requests[1].Kind)
	require.Equal(t, int64(884301), acts.requests[1].Target.ID)
	require.Equal(t, "task fetch[3], execution 884301", acts.requests[1].Target.Name)
	b.press("esc", "k", "k", "R")
	require.Contains(t, b.View(), "retry: it has not ended: requested")
	require.Len(t, acts.requests, 2)
}

func TestAFindingLeadsToTheQuestions(t *testing.T) {
	source := sample()
	source.overview.Flows = &monitor.Flows{
		Inquiries: monitor.Count{Value: 2}, Oldest: 2 * time.Hour,
		Window: 15 * time.Minute,
	}
	b := started(t, source, 80, 28)
	require.Contains(t, b.View(), "2 questions wait for people")
	require.Contains(t, b.View(), "8 Ask 2")
	for i, f := range b.env.Findings() {
		if f.Target == "inquiries" {
			b.press(strings.Split(strings.Repeat("j ", i)+"enter", " ")...)
		}
	}
	require.Equal(t, keymap.InInquiries, b.view)
	require.Equal(t, []string{monitor.InquiryPending}, source.flows.inQuery[0].Statuses)
}

func TestAQuestionIsReadInFull(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("8")
	require.Contains(t, b.View(), "go_on  yes or no, required: load what is there")
	b.press("enter")
	require.Contains(t, b.View(), "Inquiries › 41")
	require.Contains(t, b.View(), "workflow  884050 etl.nightly task approve  ● running")
	b.press("enter")
	require.Equal(t, keymap.InWorkflows, b.view)
	require.Contains(t, b.View(), "884050 etl.nightly  ● running")
	b.press("esc")
	require.Equal(t, keymap.InInquiries, b.view)
	b.press("esc", "j", "j", "enter")
	require.Contains(t, b.View(), "by bob@ops-1 2026-11-20 01:19:04Z")
	require.Contains(t, b.View(), `"ok": true`)
}

// answering is a model with the form of a question open.
func answering(t *testing.T, acts *fakeActs, w, h int) *bundle {
	t.Helper()
	b := acting(t, acts, w, h)
	b.press("8", "A")
	require.Contains(t, b.View(), "the first answer counts")
	b.press("a")
	require.Equal(t, keymap.InForm, b.stage())
	return b
}

func TestAQuestionIsAnsweredInAForm(t *testing.T) {
	acts := &fakeActs{}
	b := answering(t, acts, 80, 24)
	require.Contains(t, b.View(), "Shall the nightly load go on")
	b.press("enter")
	require.Contains(t, b.View(), "✗ it is required", "the mistake is shown beside the field")
	b.press("n", "enter", "right", "enter")
	b.typed("0")
	b.press("enter")
	require.Contains(t, b.View(), "✗ is below 1")
	b.press("backspace")
	b.typed("12")
	b.press("enter")
	b.typed("as agreed")
	b.press("enter")
	b.typed(`{"a": 1`)
	b.press("enter")
	require.Contains(t, b.View(), "✗ it is not an object as JSON")
	b.typed("}")
	b.press("enter")
	b.typed("s3cret")
	require.NotContains(t, b.View(), "s3cret")
	require.Contains(t, b.View(), "●●●●●●▌")
	b.press("enter")
	require.Contains(t, b.View(), "in the name of")
	b.press("enter")
	require.Equal(t, keymap.InConfirm, b.stage())
	require.Equal(t, act.AnswerInquiry, acts.requests[0].Kind)
	require.Equal(t, map[string]string{
		"answer.go_on": "no", "answer.source": "old", "answer.rows": "12", "answer.note": "as agreed",
		"answer.more":  `{"a": 1}`,
		"answer.token": "s3cret", act.FieldAs: "ada",
	}, acts.requests[0].Values)
	b.press("y")
	require.Equal(t, 1, acts.count())
	b.press("L")
	require.NotContains(t, b.View(), "s3cret")
}

// An answer that the database refuses opens the form again, with its texts.
func TestARefusedAnswerReturnsToItsForm(t *testing.T) {
	acts := &fakeActs{planErr: fmt.Errorf("plan: %w", &act.InvalidError{Problems: map[string]string{
		"answer.rows": "is odd", act.FieldAs: "it is assigned to eve", "": "it is Friday",
	}})}
	b := answering(t, acts, 80, 24)
	b.press("y", "tab", "tab")
	b.typed("7")
	b.press("tab", "tab", "tab", "tab", "enter")
	require.Equal(t, keymap.InForm, b.stage())
	view := b.View()
	require.Contains(t, view, "✗ is odd")
	require.Contains(t, view, "✗ it is assigned to eve")
	require.Contains(t, view, "✗ it is Friday")
	require.Contains(t, view, "rows", "the text is still there")
	require.Equal(t, act.Dropped, b.last().State)
	acts.planErr = nil
	b.press("8", "tab", "tab", "tab", "tab", "enter")
	require.Equal(t, keymap.InConfirm, b.stage())
	require.Equal(t, "78", acts.requests[1].Values["answer.rows"])
}

// Whatever a question asks for, its form fits every window and draws nothing but text.
func TestEveryFormFitsTheWindow(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]*fakeSource{"sample": sample(), "hostile": hostile()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := started(t, source, 140, 40, func(o *Options) { o.Acts = &fakeActs{} })
			b.press("8", "A", "a")
			require.Equal(t, keymap.InForm, b.stage())
			for range 8 {
				b.press("enter", "tab")
				for _, w := range testkit.Some(t, []int{20, 59, 60, 71, 80, 120, 220}, 3) {
					for _, h := range []int{6, 15, 24, 70} {
						b.send(tea.WindowSizeMsg{Width: w, Height: h})
						requireFits(t, b, w, h)
						require.NotContains(t, b.View(), "\u202e")
					}
				}
			}
		})
	}
}

func TestTheSecondAnswerNamesTheFirstOperator(t *testing.T) {
	acts := &fakeActs{nothing: "it was answered already by bob@ops-1 at 2026-11-21T02:18:00Z"}
	b := answering(t, acts, 80, 24)
	b.press("y", "tab", "tab", "tab", "tab", "tab", "tab", "enter")
	require.Contains(t, b.View(), "Nothing to do: it was answered already by bob@ops-1")
	b.press("y")
	require.Zero(t, acts.count())
}

func TestWorkflowsAndQuestionsArePrinted(t *testing.T) {
	t.Parallel()
	for view, wants := range map[screen.View][]string{
		keymap.InWorkflows: {"884050 etl.nightly", "WHY IS THE WORKFLOW WAITING?", "[3] 884301"},
		keymap.InInquiries: {"Shall the nightly load", "WHAT FITS", "go_on"},
	} {
		shot, err := Take(t.Context(), sample(), Options{View: view}, "", 140, 40)
		require.NoError(t, err)
		for _, want := range wants {
			require.Contains(t, shot.Text(), want)
		}
		raw, err := shot.JSON()
		require.NoError(t, err)
		var doc struct {
			View string                     `json:"view"`
			Data map[string]json.RawMessage `json:"data"`
		}
		require.NoError(t, json.Unmarshal(raw, &doc))
		require.Equal(t, string(view), doc.View)
		require.Contains(t, doc.Data, string(view))
		require.Contains(t, doc.Data, map[screen.View]string{
			keymap.InWorkflows: "workflow",
			keymap.InInquiries: "inquiry",
		}[view], "with the one on top")
	}
}

func TestTheWayBackAndForthKnowsWorkflowsAndQuestions(t *testing.T) {
	b := started(t, sample(), 80, 24)
	b.press("6", "8", "enter", "enter")
	require.Contains(t, b.frame()[2], "884050", "the workflow that asks")
	b.press("[")
	require.Contains(t, b.frame()[2], "Inquiries › 41")
	b.press("[")
	require.Equal(t, keymap.InWorkflows, b.view)
	require.NotContains(t, b.frame()[2], "884050", "the list as before")
	b.press("]", "]")
	require.Contains(t, b.frame()[2], "884050")
	b.press(":")
	b.typed("wf 884070")
	b.press("enter")
	require.Contains(t, b.View(), "884070 audit.check")
	b.press(":")
	b.typed("inq 42")
	b.press("enter")
	require.Contains(t, b.View(), "Which host?")
	b.press(":")
	b.typed("inq x")
	b.press("enter")
	require.Contains(t, b.View(), "is not the number of an inquiry")
}

func TestAllNineTabsFitOnTheLine(t *testing.T) {
	source := sample()
	source.overview.Flows = &monitor.Flows{Inquiries: monitor.Count{Value: 12}}
	b := started(t, source, 80, 24)
	for _, view := range Views {
		require.Contains(t, b.frame()[tabLine], keymap.ViewOf(view).Digit+" "+keymap.ViewOf(view).Short)
	}
	for _, w := range []int{80, 117, 118, 140} {
		b.send(tea.WindowSizeMsg{Width: w, Height: 24})
		tabs := b.tabs()
		require.LessOrEqual(t, tabs[len(tabs)-1].to, w)
	}
}

// The narrowest window shows the open view and the time.
func TestTheOpenTabAndTheClockStayAtEveryWidth(t *testing.T) {
	source := sample()
	source.overview.Flows = &monitor.Flows{Inquiries: monitor.Count{Value: 12}}
	b := started(t, source, 60, 15)
	widths := []int{60, longTabs - 1, longTabs, 140} // where the tabs change
	for w := 61; w < 140; w++ {
		if testkit.Slow() || w%5 == 0 {
			widths = append(widths, w)
		}
	}
	for _, w := range widths {
		b.send(tea.WindowSizeMsg{Width: w, Height: 24})
		for i, view := range Views {
			b.press(fmt.Sprint(i + 1))
			require.Contains(t, b.frame()[0], "02:19:04Z", "%d columns", w)
			v := keymap.ViewOf(view)
			name := v.Digit + " " + v.Short
			if w >= longTabs {
				name = v.Digit + " " + v.Tab
			}
			require.Contains(t, b.frame()[tabLine], "["+name, "%d columns", w)
		}
	}
}

func TestGoldenFlows(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {140, 40}} {
		name := func(what string) string { return fmt.Sprintf("%s_%dx%d", what, size[0], size[1]) }
		t.Run(name("workflow_tree"), func(t *testing.T) {
			t.Parallel()
			b := started(t, sample(), size[0], size[1])
			b.press("6", "enter", "j", "j", "j", "j", "j")
			requireGolden(t, name("workflow_tree"), b.View())
		})
		t.Run(name("workflow_why"), func(t *testing.T) {
			t.Parallel()
			b := started(t, sample(), size[0], size[1])
			b.press("6", "W")
			requireGolden(t, name("workflow_why"), b.View())
		})
		t.Run(name("inquiry_answer"), func(t *testing.T) {
			t.Parallel()
			b := answering(t, &fakeActs{}, size[0], size[1])
			b.press("enter", "tab", "right")
			requireGolden(t, name("inquiry_answer"), b.View())
		})
	}
}
