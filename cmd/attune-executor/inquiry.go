package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/inquiry"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/yamldoc"
)

func newInquiryCommand(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "inquiry",
		Aliases: []string{"inquiries"},
		Short:   "Show the questions to people, and answer them",
		Long: "Show inquiries, the questions of workflows and actions to people, and answer them. An open question\n" +
			"holds no slot; the workflow goes on with the answer, or when the time to answer is over.",
		Example: "  attune-executor inquiry list\n  attune-executor inquiry show 7\n" +
			"  attune-executor inquiry respond 7 -p approved=true",
	}, newInquiryListCommand(a), showing(a, &cobra.Command{
		Use:     "show ID",
		Short:   "Show one inquiry: its question and author, the schema of the response, and the response",
		Example: "  attune-executor inquiry show 7\n  attune-executor inquiry show 7 -o json | jq .response_schema",
	}, anInquiry, reader((*monitor.Monitor).Inquiry), inquiryPage), newInquiryRespondCommand(a))
}

func newInquiryListCommand(a *app) *cobra.Command {
	filter, cursor, all, refused := monitor.InquiryFilter{}, "", false, false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the open inquiries, the oldest first",
		Long: "List the open inquiries, the oldest first; --all adds the ended ones, the newest first. --refused\n" +
			"lists the newest questions that could not be asked instead, and why.",
		Example: "  attune-executor inquiry list\n" +
			"  attune-executor inquiry list --assigned-to ada --action 'deploy.*'\n" +
			"  attune-executor inquiry list --status timeout",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if refused {
				if all || cursor != "" || len(filter.Statuses) > 0 || filter.Execution != 0 ||
					filter.AssignedTo+filter.Action != "" {
					return usageErrorf("--refused goes with no other filter")
				}
				return a.connected((*client).listRefused)(cmd, args)
			}
			if all && len(filter.Statuses) > 0 {
				return usageErrorf("--all and --status exclude each other")
			}
			if !all && len(filter.Statuses) == 0 {
				filter.Statuses = []string{monitor.InquiryPending}
			}
			if err := checkPage(filter.Limit, &filter); err != nil {
				return err
			}
			return a.connected(func(c *client, _ []string) error { return c.listInquiries(filter, cursor) })(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "also ended inquiries")
	flags.StringSliceVar(&filter.Statuses, "status", nil,
		"only these statuses: "+strings.Join(monitor.InquiryStatuses, ", "))
	flags.BoolVar(&refused, "refused", false, "the newest questions that could not be asked, and why")
	flags.Int64Var(&filter.Execution, "execution", 0,
		"only inquiries of this execution, or of the tasks of this workflow")
	flags.StringVar(&filter.AssignedTo, "assigned-to", "", "only inquiries for this identity, by login or id")
	flags.StringVar(&filter.Action, "action", "",
		"only inquiries of actions or workflows whose ref matches; * stands for anything")
	flags.IntVar(&filter.Limit, "limit", 20, "how many to list")
	flags.StringVar(&cursor, "cursor", "", "continue after the list that gave this cursor")
	return cmd
}

func (c *client) listInquiries(filter monitor.InquiryFilter, cursor string) error {
	list, err := c.monitor().Inquiries(c.cmd.Context(), filter, cursor)
	if errors.Is(err, monitor.ErrFilter) {
		return usageErrorf("%w", err)
	}
	if err != nil {
		return err
	}
	list.Faults = nil // --refused lists them
	return c.show(list, func(w *page) {
		inquiriesPage(w, list)
		w.more(list.Next, list.Bounded)
	})
}

// listRefused lists the newest questions that could not be asked.
func (c *client) listRefused([]string) error {
	list, err := c.monitor().Inquiries(c.cmd.Context(), monitor.InquiryFilter{Limit: 1}, "")
	if err != nil {
		return err
	}
	view := struct {
		At     time.Time              `json:"at"`
		Faults []monitor.InquiryFault `json:"refused"`
	}{list.At, notNil(list.Faults)}
	return c.show(view, func(w *page) {
		const titles = "EXECUTION, ACTION, AGE, WHY"
		table(w, "every question could be asked", view.Faults, titles, func(f *monitor.InquiryFault) []any {
			return []any{f.Execution, f.ActionRef, short(view.At.Sub(f.At)), f.Reason}
		})
	})
}

func inquiriesPage(w *page, list *monitor.InquiryPage) {
	open := slices.Equal(list.Filter.Statuses, []string{monitor.InquiryPending}) // then the status says nothing
	none := "no inquiry matches; " + countText(list.Open) + " open"
	switch {
	case list.From != "":
		none = "no more inquiries match"
	case open && list.Filter.Execution == 0 && list.Filter.AssignedTo+list.Filter.Action == "":
		none = "no inquiry waits for an answer"
	}
	titles := "ID, STATUS, AGE, LEFT, FOR, ~ASKED BY, ~QUESTION"
	if open {
		titles = strings.Replace(titles, "STATUS, ", "", 1)
	}
	table(w, none, list.List, titles, func(one *monitor.Inquiry) []any {
		cells := []any{one.ID, one.Status, age(one.Age), leftText(one), one.For(), one.AskedBy(), one.Prompt}
		if open {
			cells = slices.Delete(cells, 1, 2)
		}
		return cells
	})
}

// leftText is the time left for an answer.
func leftText(one *monitor.Inquiry) string {
	switch {
	case !one.Open():
		return "-"
	case one.Left == nil:
		return "no limit"
	case *one.Left == 0:
		return "over"
	}
	return age(*one.Left)
}

func inquiryPage(w *page, d *monitor.InquiryDetail) {
	status, until := d.Status, cmp.Or(optTime(d.TimeoutAt), "no limit")
	if d.RespondedAt != nil {
		status = fmt.Sprintf("%s by %s, %s", d.Status, dash(d.Responder), agoText(*d.RespondedAt, d.Reading.At))
	}
	if d.TimeoutAt != nil && d.Left != nil {
		until += ", " + short(*d.Left) + " left"
	}
	w.row("inquiry", d.ID)
	w.row("status", status)
	w.row("asked by", fmt.Sprintf("%s, execution %d (%s)", d.AskedBy(), d.Execution, d.ExecutionStatus))
	if d.Workflow != nil {
		w.row("workflow", fmt.Sprintf("%s, execution %d (%s)", d.WorkflowRef, *d.Workflow, d.WorkflowStatus))
	}
	w.row("for", d.For())
	w.row("asked", agoText(d.Created, d.Reading.At))
	w.row("until", until)
	w.row("prompt", d.Prompt)
	if d.HasSchema {
		w.document("The response must fit:", d.ResponseSchema)
	}
	if d.Status == monitor.InquiryResponded {
		w.document("The response:", d.Response)
	}
	if d.Open() {
		w.text(fmt.Sprintf("\n`attune-executor inquiry respond %d` answers it.", d.ID))
	}
}

// respondOptions are the flags of `inquiry respond`.
type respondOptions struct {
	answer, as, note string
	params           []string
	dryRun           bool
}

func newInquiryRespondCommand(a *app) *cobra.Command {
	var o respondOptions
	cmd := &cobra.Command{
		Use:   "respond ID",
		Short: "Answer an inquiry, at most once and in time",
		Long: "Answer an inquiry. The consequences are written with the answer: an execution that only asked ends,\n" +
			"and the workflow continues. An answer is refused if it is too late, if the inquiry was answered or\n" +
			"cancelled before, if it does not fit the schema, or if the inquiry is assigned to another login.\n" +
			"Answer an assigned inquiry with --as LOGIN, which the audit keeps beside your account. Without\n" +
			"--answer or -p the command asks for each field, at a terminal; it does not show secret fields while\n" +
			"you type.",
		Example: "  attune-executor inquiry respond 7\n" +
			"  attune-executor inquiry respond 7 -p approved=true -p note='after lunch'\n" +
			"  attune-executor inquiry respond 7 --answer '{\"approved\": false}' --as ada\n" +
			"  attune-executor inquiry respond 7 --answer @answer.json",
		Args: oneArg("the id of an inquiry"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := anInquiry.id(args[0])
			if err != nil {
				return err
			}
			if o.answer != "" && len(o.params) > 0 {
				return usageErrorf("--answer and -p exclude each other")
			}
			return a.respond(cmd, id, &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.answer, "answer", "", "the response as JSON; @FILE reads it from a file, @- from standard input")
	flags.StringArrayVarP(&o.params, "param", "p", nil,
		"one key=value of the response; key:=value is JSON; may be repeated")
	flags.StringVar(&o.as, "as", "", "the login of the identity that answers")
	flags.StringVar(&o.note, "note", "", "the reason, for the audit")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what it would do and do nothing")
	return cmd
}

// responseOf returns the given response, or asks for one at the terminal.
func (t *operator) responseOf(id int64, o *respondOptions) (json.RawMessage, error) {
	if o.answer != "" {
		return readAnswer(o.answer, t.cmd.InOrStdin())
	}
	in := t.cmd.InOrStdin()
	if len(o.params) == 0 && !interactive(in) {
		return nil, usageErrorf("there is no answer: give it with --answer or -p key=value")
	}
	detail, err := t.monitor().Inquiry(t.cmd.Context(), id)
	if errors.Is(err, monitor.ErrNotFound) {
		return nil, anInquiry.missing(id)
	}
	if err != nil {
		return nil, err
	}
	if len(o.params) > 0 {
		return pairsAnswer(o.params, detail.ResponseSchema)
	}
	if !detail.Open() { // do not ask for an answer that will be refused; the answer says why
		return json.RawMessage(`null`), nil
	}
	p := &prompter{in: bufio.NewReader(in), out: t.stderr}
	if file, ok := in.(*os.File); ok {
		p.hidden = func() (string, error) {
			text, err := term.ReadPassword(int(file.Fd()))
			_, _ = fmt.Fprintln(t.stderr)
			return string(text), err
		}
	}
	return p.ask(detail.Prompt, detail.ResponseSchema)
}

// pairsAnswer is the object of the -p pairs.
func pairsAnswer(pairs []string, form json.RawMessage) (json.RawMessage, error) {
	fields := map[string]any{}
	if err := cmp.Or(checkPairs(pairs), addPairs(fields, pairs, form)); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// maxAnswerFile bounds a response in a file.
const maxAnswerFile = 1 << 20

func readAnswer(text string, stdin io.Reader) (json.RawMessage, error) {
	raw := []byte(text)
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		var err error
		if raw, err = readFile("answer", name, stdin, maxAnswerFile); err != nil {
			return nil, err
		}
	}
	raw = bytes.TrimPrefix(raw, []byte(yamldoc.BOM))
	_, err := parseJSON("answer", string(raw))
	if errors.Is(err, errNotJSON) {
		err = usageErrorf(`the answer is not JSON: write a text in quotes, as in --answer '"yes"'`)
	}
	return raw, err
}

func (a *app) respond(cmd *cobra.Command, id int64, o *respondOptions) error {
	how := acting{planFlags: planFlags{dryRun: o.dryRun}, Command: act.Command{Sends: true, Noun: "inquiry"}}
	return a.withOperator(cmd, how, func(t *operator) error {
		response, err := t.responseOf(id, o)
		if err != nil {
			return err
		}
		return t.act(act.Request{
			Kind: act.AnswerInquiry, Target: act.Target{ID: id}, Reason: o.note,
			Values: map[string]string{act.FieldResponse: string(response), act.FieldAs: o.as},
		}, how)
	})
}

// prompter asks for a response at the terminal, field by field.
type prompter struct {
	in     *bufio.Reader
	out    io.Writer
	hidden func() (string, error) // reads what shall not be shown; nil reads it openly
}

// maxTries bounds the invalid texts for one field.
const maxTries = 5

// ask asks for every field of the schema, or for any JSON, and for a confirmation.
func (p *prompter) ask(prompt string, schema json.RawMessage) (json.RawMessage, error) {
	p.printf("%s\n", clean(prompt))
	form := inquiry.NewAnswerForm(schema)
	texts := map[string]string{}
	for i := range form.Fields {
		field := &form.Fields[i]
		text, err := p.field(field)
		if err != nil {
			return nil, err
		}
		texts[field.Name] = text
	}
	response, problems := form.Compose(texts)
	if len(problems) > 0 {
		return nil, refusedErrorf("nothing was answered: %s", problemsText(problems))
	}
	p.printf("answer it so? y or n: ")
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(line, "y") && !strings.EqualFold(line, "yes") {
		return nil, refusedErrorf("nothing was answered: you did not say y")
	}
	return response, nil
}

// problemsText names the problems that no single field has.
func problemsText(problems map[string]string) string {
	words := make([]string, 0, len(problems))
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		words = append(words, clean(strings.TrimSpace(name+" "+problems[name])))
	}
	return strings.Join(words, "; ")
}

// field asks for one value until it fits. An empty line is the default, or omits an optional field.
func (p *prompter) field(f *inquiry.AnswerField) (string, error) {
	for range maxTries {
		p.printf("%s: ", label(f))
		read := p.line
		if f.Secret && p.hidden != nil {
			read = p.hidden
		}
		line, err := read()
		if err != nil {
			return "", err
		}
		if line == "" {
			line = f.Default
		}
		if err = f.Check(line); err == nil {
			return line, nil
		}
		p.printf("  %s\n", clean(err.Error()))
	}
	return "", refusedErrorf("nothing was answered: %s did not fit %d times", clean(f.Name), maxTries)
}

func label(f *inquiry.AnswerField) string {
	takes := f.Words
	switch {
	case f.Default != "":
		takes += "; default " + f.Default
	case f.Required:
		takes += "; required"
	}
	text := f.Name
	if f.About != "" {
		text += " - " + f.About
	}
	return clean(text + " (" + takes + ")")
}

func (p *prompter) line() (string, error) {
	line, err := p.in.ReadString('\n')
	if err != nil && (!errors.Is(err, io.EOF) || line == "") {
		return "", refusedErrorf("nothing was answered: the input ended")
	}
	return strings.TrimSpace(line), nil
}

func (p *prompter) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format, args...) // that it cannot be written is no reason to fail
}
