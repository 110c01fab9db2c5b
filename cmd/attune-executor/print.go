package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/jsonvalue"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/supervise"
	"github.com/attune-go/attune/core/yamldoc"
)

// print writes a value in the format of -o; table writes the text format.
// An act whose receipt cannot be written has happened: the receipt then goes to standard error.
func (a *app) print(cmd *cobra.Command, value any, table func(w io.Writer) error) error {
	var out bytes.Buffer
	if err := a.format(&out, value, table); err != nil {
		return err
	}
	_, err := cmd.OutOrStdout().Write(out.Bytes())
	if err == nil || supervise.NoReader(err) {
		return err
	}
	if a.acts {
		_, _ = a.stderr.Write(out.Bytes()) // there is no other place
	}
	return failedErrorf("write the output: %w", err)
}

func (a *app) format(out io.Writer, value any, table func(w io.Writer) error) error {
	switch a.output {
	case "json":
		text, err := jsonvalue.Indented(value)
		if err != nil {
			return err
		}
		_, err = io.WriteString(out, phrase.JSON(text)+"\n")
		return err
	case "yaml":
		text, err := yamldoc.Write(value)
		if err != nil {
			return err
		}
		// Characters that steer a terminal are in double quotes, where YAML takes the escapes of JSON.
		_, err = io.WriteString(out, phrase.JSON(text))
		return err
	default:
		var cells strings.Builder
		if err := table(&cells); err != nil {
			return err
		}
		text := cells.String()
		if a.ascii() {
			text = asciiSigns.Replace(text)
		}
		_, err := io.WriteString(out, phrase.Align(text))
		return err
	}
}

// ascii reports whether the locale lacks the signs of a text.
func (a *app) ascii() bool {
	utf8, known := phrase.UTF8(a.environ)
	return known && !utf8
}

var asciiSigns = strings.NewReplacer("✓", "+", "✗", "x", "▲", "!", "→", "->", "…", "...", "·", "-")

// page is the text of a command. It only collects, so adding to it never fails; app.write aligns
// the cells of its rows.
type page struct{ strings.Builder }

// widestCell bounds the cells of a column.
const widestCell = 60

// row adds a line of cells, without terminal control characters. Only the last one may be wide.
func (p *page) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = clean(fmt.Sprint(cell))
		if i < len(cells)-1 {
			texts[i] = phrase.CutMiddle(texts[i], widestCell)
		}
	}
	p.text(strings.Join(texts, "\t"))
}

func (p *page) rowf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.row(text)
}

// text adds a clean text.
func (p *page) text(text string) { p.WriteString(text + "\n") }

// lines adds a text of many lines, without terminal control characters.
func (p *page) lines(text string) {
	for line := range strings.Lines(text) {
		p.text(clean(strings.TrimSuffix(line, "\n")))
	}
}

func (p *page) document(title string, raw []byte) {
	if len(raw) > 0 {
		p.text("\n" + title + "\n" + pretty(raw))
	}
}

// fact adds a name and its value, if the value is not empty.
func (p *page) fact(name, value string) {
	if value != "" {
		p.row(name, value)
	}
}

func (p *page) facts(facts [][2]string) {
	for _, fact := range facts {
		p.fact(fact[0], fact[1])
	}
}

// more says how a list goes on, by an id or a ref.
func (p *page) more(next any, bounded bool) {
	switch {
	case bounded:
		p.rowf("the search stopped at its bound; more may match: --cursor %v goes on", next)
	case next != int64(0) && next != "":
		p.rowf("more: --cursor %v", next)
	}
}

// write prints a value in the format of -o; text writes the text format.
func (a *app) write(cmd *cobra.Command, value any, text func(w *page)) error {
	return a.print(cmd, value, func(w io.Writer) error {
		var p page
		text(&p)
		_, err := io.WriteString(w, p.String())
		return err
	})
}

// tableWidth is the width of a table with flexible columns.
const tableWidth = 80

// table writes a list with a line for each item; none is the text of an empty list. The titles are divided by commas.
// Texts below a title with ! are never cut. Those below one with ~, which come last, are cut if the table is wider than
// tableWidth.
func table[T any](p *page, none string, list []T, titles string, cells func(one *T) []any) {
	if len(list) == 0 && none != "" {
		p.row(none)
		return
	}
	names := strings.Split(titles, ", ")
	lines := [][]string{make([]string, len(names))}
	for i, name := range names {
		lines[0][i] = strings.TrimLeft(name, "!~")
	}
	for i := range list {
		var line []string
		for _, cell := range cells(&list[i]) {
			line = append(line, clean(fmt.Sprint(cell)))
		}
		lines = append(lines, line)
	}
	fit(lines, names)
	for _, line := range lines {
		p.text(strings.Join(line, "\t"))
	}
}

// fit cuts the flexible columns to tableWidth, and the others but the last to widestCell.
func fit(lines [][]string, names []string) {
	widest, left, flexible := make([]int, len(names)), tableWidth-2*(len(names)-1), []int(nil)
	for i, name := range names {
		for _, line := range lines {
			if name[0] != '!' && i < len(names)-1 {
				line[i] = phrase.CutMiddle(line[i], widestCell)
			}
			widest[i] = max(widest[i], phrase.Width(line[i]))
		}
		if name[0] == '~' {
			flexible = append(flexible, i)
		} else {
			left -= widest[i]
		}
	}
	for n, i := range flexible {
		share := max(left/(len(flexible)-n), 6)
		if n+1 < len(flexible) { // the others take what the last column does not need
			share = max(share, left-widest[flexible[n+1]])
		}
		share = min(widest[i], share)
		left -= share
		for _, line := range lines {
			line[i] = phrase.CutMiddle(line[i], share)
		}
	}
}

// details adds facts, and then pieces of JSON by name.
func (p *page) details(lines [][2]string, pieces ...any) {
	p.facts(lines)
	for i := 0; i+1 < len(pieces); i += 2 {
		raw := fmt.Appendf(nil, "%s", pieces[i+1])
		if len(raw) > 0 && string(raw) != "{}" && string(raw) != "[]" {
			p.text(fmt.Sprintf("%s\n%s", pieces[i], indent(pretty(raw))))
		}
	}
}
