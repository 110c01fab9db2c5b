package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/inquiry"
)

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

// label is the name of a field and what it takes.
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
