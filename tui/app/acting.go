package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/tui/act"
	"github.com/attune-go/attune/tui/keymap"
	"github.com/attune-go/attune/tui/screen"
	"github.com/attune-go/attune/tui/theme"
	"github.com/attune-go/attune/tui/widget"
)

// Acts carries out what operators ask for.
type Acts interface {
	// Plan says what an order would change, and changes nothing.
	Plan(ctx context.Context, order act.Order) (*act.Plan, error)
	// Run carries out a plan, once. With an error the receipt, if there is one,
	// says what had been done by then.
	Run(ctx context.Context, plan *act.Plan, reason string, progress *act.Progress) (*act.Receipt, error)
}

// dialog is the one dialog that is open, or none. It goes from the menu over a
// form to the plan, its confirmation and its run:
//
//	menu ─▸ form ─▸ planning ─▸ confirm ─▸ running ─▸ closed, receipt as a toast
//	                   └──▸ failed ◂──────────┘
//
// Esc leads one step back: from the question to the form, with what was written
// there, and from the form to the menu; where there is no form, out of the dialog. Out
// of running it leaves the operation alone, which goes on and reports.
type dialog struct {
	// scope is the stage, by the name of its keys; empty while no dialog is open.
	scope keymap.Scope
	menu  act.Menu
	list  *widget.Menu
	item  act.Item
	form  *widget.Form
	// note is why a line of the menu was not taken.
	note string
	// op is the operation from planning on.
	op      *act.Operation
	cancel  context.CancelFunc
	plan    *act.Plan
	planned time.Time
	confirm *widget.Confirm
	// held is the letter pressed on a button of the question, until it turns out to be
	// alone; press numbers it.
	held  tea.KeyMsg
	press int
	// relations are what the menu of related things turns to, under a title.
	relations []screen.Relation
	title     string
	// about is the execution of that menu, of which more is being read; own are the
	// lines that stand before what that says.
	about *monitor.Execution
	own   []screen.Relation
	// offers are what can be taken out of the dashboard.
	offers []offer
	// table is what columns are chosen for.
	table *widget.Table
}

// keys names the keys that work in the dialog now.
func (d *dialog) keys() keymap.Scope {
	if d.scope == keymap.InConfirm && d.confirm.Typing() {
		return keymap.InTyping
	}
	return d.scope
}

// order is what the chosen line of the menu asks for.
func (d *dialog) order(values map[string]string) act.Order {
	return act.Order{Kind: d.item.Kind, Target: d.target(), Values: values, Targets: d.menu.Targets}
}

// target is what the chosen line of the menu is about.
func (d *dialog) target() act.Target {
	if d.item.Target.Name != "" {
		return d.item.Target
	}
	return d.menu.Target
}

// planMsg and runMsg are the answers of whoever acts.
type planMsg struct {
	op   *act.Operation
	plan *act.Plan
	err  error
}

type runMsg struct {
	op      *act.Operation
	receipt *act.Receipt
	err     error
}

// openMenu opens the menu of the row under the cursor.
func (m *Model) openMenu() {
	if m.tooSmall() {
		return
	}
	if m.env.Locked != "" {
		m.say("Nothing can be acted upon: " + m.env.Locked)
		return
	}
	actionable, ok := m.screen().(screen.Actionable)
	if !ok {
		m.say("There is nothing to act upon in this view.")
		return
	}
	menu, ok := actionable.Acts()
	if !ok || len(menu.Items) == 0 {
		m.say("There is nothing to act upon under the cursor.")
		return
	}
	m.dialog = dialog{scope: keymap.InMenu, menu: menu, list: widget.NewMenu(choices(menu))}
}

// byKey are the acts that have a key of their own.
var byKey = map[keymap.Action][]act.Kind{
	keymap.Requeue: {act.RequeueLetter, act.RetryExecution, act.RetryTask, act.RetryWorkflow}, keymap.Discard: {act.DiscardLetter}, keymap.Purge: {act.DiscardAllLetters, act.DiscardLetter},
	keymap.MoveTo: {act.SendLetters}, keymap.Undo: {act.UndoLetters}, keymap.Take: {act.TakeLetters},
}

// actAtOnce opens the menu and chooses the line that the key stands for. One that
// does not apply stays in sight with its reason.
func (m *Model) actAtOnce(action keymap.Action) tea.Cmd {
	if action == keymap.Purge && m.env.Locked == "" && m.view == keymap.InDeadLetters && m.letters.DiscardsFiltered() {
		return m.takeFor(action) // what the filter matches is frozen before it is asked about
	}
	m.openMenu()
	for _, kind := range byKey[action] {
		for _, item := range m.dialog.menu.Items {
			if item.Kind == kind {
				m.dialog.list.Select(item.Key)
				return m.choose()
			}
		}
	}
	return nil
}

func choices(menu act.Menu) []widget.Choice {
	list := make([]widget.Choice, len(menu.Items))
	for i, item := range menu.Items {
		list[i] = widget.Choice{Key: item.Key, Label: item.Label, Help: item.Help, Not: item.Not}
	}
	return list
}

// dialogKey takes a key while a dialog is open.
func (m *Model) dialogKey(msg tea.KeyMsg) tea.Cmd {
	d := &m.dialog
	action := keymap.None
	if !msg.Paste {
		action, _ = m.keymap.Lookup(d.keys(), msg.String())
	}
	if m.tooSmall() && action != keymap.Back && action != keymap.Hide {
		return nil // nobody confirms what cannot be seen
	}
	switch d.scope {
	case keymap.InMenu:
		return m.menuKey(action, msg)
	case keymap.InForm:
		return m.formKey(action, msg)
	case keymap.InConfirm:
		return m.questionKey(action, msg)
	case keymap.InRunning:
		m.runningKey(action)
	case keymap.InColumns:
		m.columnsKey(action)
	case keymap.InRelated:
		return m.relatedKey(action, msg)
	case keymap.InCarry:
		return m.carryKey(action, msg)
	case keymap.InPlanning:
		if action == keymap.Back {
			return m.backToForm()
		}
	case keymap.InFailed:
		switch action {
		case keymap.Back:
			return m.backToForm()
		case keymap.Refresh:
			return m.planFor(d.op.Order)
		}
	}
	return nil
}

func (m *Model) menuKey(action keymap.Action, msg tea.KeyMsg) tea.Cmd {
	d := &m.dialog
	d.note = ""
	switch action {
	case keymap.RowDown:
		d.list.Move(1)
	case keymap.RowUp:
		d.list.Move(-1)
	case keymap.Back:
		return m.closeDialog()
	case keymap.Choose:
		return m.choose()
	default:
		if !msg.Paste && d.list.Select(msg.String()) {
			return m.choose()
		}
	}
	return nil
}

// choose takes the line under the cursor, if it can be taken.
func (m *Model) choose() tea.Cmd {
	d := &m.dialog
	d.item = d.menu.Items[d.list.Cursor()]
	if d.item.Not != "" {
		d.note = d.item.Label + ": " + d.item.Not
		return nil
	}
	if len(d.item.Fields) == 0 {
		return m.planFor(d.order(nil))
	}
	d.scope, d.form = keymap.InForm, widget.NewForm(formFields(d.item.Fields))
	return nil
}

func (m *Model) formKey(action keymap.Action, msg tea.KeyMsg) tea.Cmd {
	d := &m.dialog
	switch action {
	case keymap.Back:
		d.scope, d.form = keymap.InMenu, nil
	case keymap.NextPane:
		d.form.Move(1)
	case keymap.PrevPane:
		d.form.Move(-1)
	case keymap.Choose:
		if d.form.Next() {
			return m.planFor(d.order(d.form.Values()))
		}
	default:
		d.form.Update(msg)
	}
	return nil
}

// planFor asks what an order would change. The answer comes as a message.
func (m *Model) planFor(order act.Order) tea.Cmd {
	m.lastOperation++
	op := &act.Operation{
		ID: m.lastOperation, Order: order, Title: m.askedFor(order), State: act.Planning,
		Began: m.env.Clock, Progress: &act.Progress{},
	}
	m.remember(op)
	ctx, cancel := context.WithTimeout(m.ctx, act.PlanTimeout)
	was := m.dialog
	m.dialog = dialog{scope: keymap.InPlanning, menu: was.menu, list: was.list, item: was.item, form: was.form, op: op, cancel: cancel}
	acts := m.opts.Acts
	ask := func() (msg tea.Msg) {
		defer cancel()
		defer func() {
			if fault := recover(); fault != nil {
				msg = planMsg{op: op, err: fmt.Errorf("the plan failed: %v", fault)}
			}
		}()
		plan, err := acts.Plan(ctx, order)
		if err == nil && plan == nil {
			err = errors.New("no answer")
		}
		return planMsg{op: op, plan: plan, err: err}
	}
	return tea.Batch(ask, m.spin())
}

// askedFor names an order in a line, before its plan does.
func (m *Model) askedFor(order act.Order) string {
	if m.dialog.item.Label == "" {
		return string(order.Kind) + " " + order.Target.Name
	}
	return m.dialog.item.Label + " " + cmp.Or(m.dialog.item.Touches, order.Target.Name)
}

// planned takes over a plan. One that was left meanwhile is dropped.
func (m *Model) planned(msg planMsg) {
	d, op := &m.dialog, msg.op
	if d.op != op || d.scope != keymap.InPlanning {
		if op.Remark == "" {
			op.Remark = "left before its plan came; nothing was done"
		}
		return
	}
	if msg.err != nil {
		m.unplanned(msg.err)
		return
	}
	if m.opts.Protected && msg.plan.Word == "" {
		msg.plan.Word = m.opts.Context // so that nobody acts here who thinks to be elsewhere
	}
	op.State, op.Title = act.Planned, widget.Clean(msg.plan.Title)
	d.scope, d.plan, d.planned = keymap.InConfirm, msg.plan, m.env.Clock
	list := texts(msg.plan.Lines)
	if msg.plan.Nothing != "" {
		list = append(list, widget.Text{}, widget.Text{Role: theme.Warn, Text: "Nothing to do: " + msg.plan.Nothing})
		d.confirm = widget.NewNotice(list)
		return
	}
	d.confirm = widget.NewConfirm(list, msg.plan.Word, cmp.Or(d.item.Label, "run"))
}

// planReason is the error of a plan that an operator can act on. Which server is away
// stands around what the network says of it.
func planReason(err error) error {
	var network *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", act.PlanTimeout)
	case errors.As(err, &network):
		return err
	default:
		return reason(err)
	}
}

func (m *Model) confirmKey(action keymap.Action, msg tea.KeyMsg) tea.Cmd {
	d := &m.dialog
	answer := widget.Undecided
	switch action {
	case keymap.Back:
		return m.backToForm()
	case keymap.No:
		answer = widget.Cancelled
	case keymap.NextPane:
		d.confirm.Move(1)
	case keymap.PrevPane:
		d.confirm.Move(-1)
	case keymap.Left, keymap.Right:
		d.confirm.Press(action == keymap.Right)
	case keymap.HalfDown:
		d.confirm.Scroll(1)
	case keymap.HalfUp:
		d.confirm.Scroll(-1)
	case keymap.Refresh:
		m.leave(d.op, "planned again")
		return m.planFor(d.op.Order)
	case keymap.Export:
		return m.exportPlan()
	case keymap.Yank:
		return m.copyPlan()
	case keymap.Yes:
		answer = d.confirm.Yes()
	case keymap.Choose:
		answer = d.confirm.Enter()
	default:
		d.confirm.Update(msg)
	}
	switch answer {
	case widget.Cancelled:
		return m.closeDialog()
	case widget.Confirmed:
		return m.run()
	default:
		return nil
	}
}

// run carries out the plan that was confirmed. The plan is given up with that,
// so that whatever is pressed next runs nothing again.
func (m *Model) run() tea.Cmd {
	d := &m.dialog
	switch {
	case m.env.Locked != "":
		d.confirm.Refuse(m.env.Locked)
		return nil
	case m.env.Clock.Sub(d.planned) > act.PlanTTL:
		d.confirm.Press(false) // so that r is no letter of a text
		d.confirm.Refuse("the plan is " + widget.Age(m.env.Clock.Sub(d.planned)) + " old: r plans again")
		return nil
	}
	op, plan, reason := d.op, d.plan, d.confirm.Reason()
	op.State, op.Ran, op.Reason = act.Running, m.env.Clock, reason
	d.scope, d.plan, d.confirm = keymap.InRunning, nil, nil
	ctx, cancel := context.WithTimeout(m.ctx, act.RunTimeout)
	m.underWay[op] = cancel
	m.workers.Add(1)
	here := m.place
	here.running.Add(1)
	acts := m.opts.Acts
	work := func() (msg tea.Msg) {
		defer m.workers.Done()
		defer here.running.Done()
		defer cancel()
		defer func() {
			if fault := recover(); fault != nil {
				msg = runMsg{op: op, err: fmt.Errorf("the act failed: %v", fault)}
			}
		}()
		receipt, err := acts.Run(ctx, plan, reason, op.Progress)
		if err == nil && receipt == nil {
			err = errors.New("no receipt")
		}
		return runMsg{op: op, receipt: receipt, err: err}
	}
	return tea.Batch(work, m.spin())
}

func (m *Model) runningKey(action keymap.Action) {
	d := &m.dialog
	switch action {
	case keymap.Hide:
		m.say(d.op.Title + " goes on; L shows it")
		m.drop()
	case keymap.Stop:
		d.op.Remark = "stopped by hand"
		m.underWay[d.op]()
	}
}

// ran takes over what an act has come to, whatever is on the screen by now.
func (m *Model) ran(msg runMsg) tea.Cmd {
	op := msg.op
	delete(m.underWay, op)
	op.Receipt, op.Ended, op.State = msg.receipt, m.env.Clock, act.Done
	switch {
	case msg.err != nil:
		op.State, op.Err = act.Failed, widget.Clean(runReason(msg.err).Error())
	case msg.receipt.Partly:
		op.State = act.Partial
	}
	if m.dialog.op == op {
		if op.State == act.Failed {
			m.dialog.scope = keymap.InFailed
			return nil
		}
		m.drop()
	}
	if m.dialog.scope != "" && op.Order.Kind == kindExport && msg.err == nil {
		m.say("Written: " + op.Receipt.Next) // its report stands behind the dialog
	}
	m.unmark(op)
	m.report(op)
	return m.refresh()
}

// runReason is the error of an act that an operator can act on.
func runReason(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("stopped after %s", act.RunTimeout)
	case errors.Is(err, context.Canceled):
		return errors.New("stopped; what was done stays")
	default:
		return err
	}
}

// leave writes down that an operation was not confirmed.
func (m *Model) leave(op *act.Operation, why string) {
	if op != nil && (op.State == act.Planning || op.State == act.Planned) {
		op.State, op.Ended, op.Remark = act.Dropped, m.env.Clock, why
	}
}

// closeDialog closes the dialog, whatever it shows. An operation that was not
// confirmed is left.
func (m *Model) closeDialog() tea.Cmd {
	d := &m.dialog
	why := "left; nothing was done"
	if d.plan != nil && d.plan.Nothing != "" {
		why = "nothing to do: " + widget.Clean(d.plan.Nothing)
	}
	m.leave(d.op, why)
	if d.cancel != nil {
		d.cancel()
	}
	m.drop()
	return nil
}

// drop takes the dialog off the screen and shows what was read meanwhile.
func (m *Model) drop() {
	m.dialog = dialog{}
	for _, f := range feeds {
		if result, ok := m.held[f.name]; ok {
			delete(m.held, f.name)
			m.apply(f.name, result)
		}
	}
}
