package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/secret"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
)

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
		Long: "Answer an inquiry. What follows is written with the answer: the execution that only asked ends, and the workflow goes\n" +
			"on. Refused is what comes too late, was answered or cancelled before, does not fit what is asked for, or is for somebody\n" +
			"else: one that is assigned is answered with --as LOGIN, which the audit keeps beside who did it. Without --answer or -p\n" +
			"it asks, at a terminal, for what the inquiry wants to know; what is secret is not shown while it is typed.",
		Example: "  attune-executor inquiry respond 7\n  attune-executor inquiry respond 7 -p approved=true -p note='after lunch'\n" +
			"  attune-executor inquiry respond 7 --answer '{\"approved\": false}' --as ada\n  attune-executor inquiry respond 7 --answer @answer.json",
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
	flags.StringArrayVarP(&o.params, "param", "p", nil, "one key=value of the response; key:=value is JSON; may be repeated")
	flags.StringVar(&o.as, "as", "", "the login of the identity in whose name it is answered")
	flags.StringVar(&o.note, "note", "", "why, for those who look at what was done")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what it would do and do nothing")
	return cmd
}

func answerText(p *triage.AnswerPlan, verb string) string {
	what := fmt.Sprintf("whoever waits for execution %d of %s goes on", p.Execution, p.ActionRef)
	if p.Completes {
		what = fmt.Sprintf("execution %d of %s completes", p.Execution, p.ActionRef)
	}
	return fmt.Sprintf("inquiry %d: %s with %s; %s", p.Inquiry, verb, p.Public, what)
}

// answerProblem says why an answer was not taken, what to do, and by its code what
// kind of problem it is.
func answerProblem(id int64, err error) error {
	refused, isRefused := errors.AsType[*triage.AnswerRefusedError](err)
	switch {
	case errors.Is(err, triage.ErrNoInquiry):
		return anInquiry.missing(id)
	case isRefused && refused.Reason == triage.AnswerNotYours:
		return refusedErrorf("%w: --as LOGIN answers in the name of that identity", err)
	case isRefused && refused.Reason == triage.AnswerUnfit:
		return refusedErrorf("%w: `attune-executor inquiry show %d` shows what is asked for", err, id)
	case isRefused:
		return refusedErrorf("%w", err)
	case store.ClassOf(err) == store.ClassUnknown:
		return failedErrorf("%w: whether it was answered is unknown: `attune-executor inquiry show %d` tells", err, id)
	case errors.Is(err, context.Canceled):
		return failedErrorf("interrupted: `attune-executor inquiry show %d` tells whether it was answered", id)
	}
	return err
}

// responseOf makes the response of what was given, or asks a person for it.
func (t *triageClient) responseOf(id int64, o *respondOptions) (json.RawMessage, error) {
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
	if !detail.Open() { // nobody shall type in vain; the act says why
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
	for _, pair := range pairs {
		if key, _, ok := strings.Cut(pair, "="); !ok || strings.TrimSuffix(key, ":") == "" {
			return nil, usageErrorf("%q has no key: write -p key=value", pair)
		}
	}
	fields := map[string]any{}
	if err := addPairs(fields, pairs, form); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// maxAnswerFile bounds a response that is read.
const maxAnswerFile = 1 << 20

// readAnswer reads the response of --answer.
func readAnswer(text string, stdin io.Reader) (json.RawMessage, error) {
	raw := []byte(text)
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		file, err := openParams(name, stdin)
		if err != nil {
			return nil, usageErrorf("read the answer: %w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		if raw, err = io.ReadAll(io.LimitReader(file, maxAnswerFile+1)); err != nil {
			return nil, usageErrorf("read the answer: %w", err)
		}
	}
	if !json.Valid(raw) {
		return nil, usageErrorf(`the answer is not JSON: write a text in quotes, as in --answer '"yes"'`)
	}
	return raw, nil
}

func (a *app) respond(cmd *cobra.Command, id int64, o *respondOptions) error {
	t, err := a.openTriage(cmd, !o.dryRun)
	if err != nil {
		return err
	}
	defer t.close()
	keys, err := secret.NewKeyring(t.cfg.Security.EncryptionKey)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	operator := t.WithKeyring(keys)
	order := triage.AnswerOrder{Inquiry: id, As: o.as, Note: o.note}
	if order.Response, err = t.responseOf(id, o); err != nil {
		return err
	}
	if o.dryRun {
		plan, err := operator.PlanAnswer(cmd.Context(), order)
		if err != nil {
			return answerProblem(id, err)
		}
		_, err = t.settle(planFlags{dryRun: true}, plan, func(w *page) { w.row(answerText(plan, "would be answered")) }, nil)
		return err
	}
	receipt, err := operator.Answer(cmd.Context(), order)
	if err != nil {
		return answerProblem(id, err)
	}
	return t.show(delivered(receipt, t.delivery(cmd.Context(), receipt.Sent)), func(w *page) {
		w.rowf("%s (audit %d)", answerText(&receipt.AnswerPlan, "answered"), receipt.Audit)
	})
}

// prompter asks a person for a response, field by field.
type prompter struct {
	in     *bufio.Reader
	out    io.Writer
	hidden func() (string, error) // reads what shall not be shown; nil reads it openly
}

// maxTries is how often a person may write what does not fit.
const maxTries = 5

// ask asks for everything that the schema names, or for any JSON, and has it
// confirmed.
func (p *prompter) ask(prompt string, schema json.RawMessage) (json.RawMessage, error) {
	p.printf("%s\n", clean(prompt))
	form := monitor.NewAnswerForm(schema)
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

// problemsText says what no single field could be blamed for while it was asked.
func problemsText(problems map[string]string) string {
	words := make([]string, 0, len(problems))
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		words = append(words, clean(strings.TrimSpace(name+" "+problems[name])))
	}
	return strings.Join(words, "; ")
}

// field asks for one value until it fits. An empty line takes the default, or leaves
// out what is not required.
func (p *prompter) field(f *monitor.AnswerField) (string, error) {
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

// label is the name of a field and what it takes.
func label(f *monitor.AnswerField) string {
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
