package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/attune-go/attune/core/terminal"
)

// print writes a value in the format that -o asks for; table writes it for
// people.
func (a *app) print(cmd *cobra.Command, value any, table func(w io.Writer) error) error {
	out := cmd.OutOrStdout()
	switch a.output {
	case "json":
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			return err
		}
		_, err := io.WriteString(out, terminal.JSON(text.String()))
		return err
	case "yaml":
		return writeYAML(out, value)
	default:
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		if err := table(w); err != nil {
			return err
		}
		return w.Flush()
	}
}

// writeYAML writes what JSON would, with the same names in the same order.
func writeYAML(out io.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var readable bytes.Buffer // YAML has no control characters but as escapes, JSON has some
	for _, r := range string(text) {
		if unicode.IsControl(r) {
			fmt.Fprintf(&readable, `\u%04x`, r)
		} else {
			readable.WriteRune(r)
		}
	}
	var document yaml.Node
	if err := yaml.Unmarshal(readable.Bytes(), &document); err != nil {
		return err
	}
	plain(&document)
	var written strings.Builder
	encoder := yaml.NewEncoder(&written)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&document), encoder.Close()); err != nil {
		return err
	}
	// Characters that steer a terminal are in double quotes, where YAML takes the escapes of JSON.
	_, err = io.WriteString(out, terminal.JSON(written.String()))
	return err
}

// plain drops the styles that came from JSON.
func plain(node *yaml.Node) {
	if node.Kind != yaml.ScalarNode && len(node.Content) > 0 {
		node.Style = 0
	}
	if node.Kind == yaml.ScalarNode && node.Style == yaml.DoubleQuotedStyle {
		node.Tag = "!!str"
		if !needsQuotes(node.Value) && strings.IndexFunc(node.Value, steers) < 0 {
			node.Style = 0
		}
	}
	for _, child := range node.Content {
		plain(child)
	}
}

func steers(r rune) bool { return terminal.Steers(r) && r != '\n' && r != '\t' }

// needsQuotes reports whether some parser would take the text for something
// else, such as yes for true.
func needsQuotes(text string) bool {
	out, err := yaml.Marshal(text)
	return err != nil || strings.HasPrefix(string(out), `"`) || strings.HasPrefix(string(out), "'")
}

// row writes the cells of one line of a table. Text from the database is
// stripped of what could steer the terminal.
func row(w io.Writer, cells ...any) error {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = clean(fmt.Sprint(cell))
	}
	_, err := fmt.Fprintln(w, strings.Join(texts, "\t"))
	return err
}

func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if terminal.Steers(r) {
			return ' '
		}
		return r
	}, text)
}

// pretty indents a JSON text for people, one line per value.
func pretty(text []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if !json.Valid(text) || decoder.Decode(&value) != nil {
		return clean(string(text))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return clean(string(text))
	}
	return terminal.JSON(strings.TrimSuffix(out.String(), "\n"))
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// short renders a duration with as many digits as people read.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

// oneArg asks for exactly one argument and says what it is.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return fmt.Errorf("%s needs %s", cmd.Name(), what)
		case 1:
			return nil
		}
		return fmt.Errorf("%s takes one argument, %s, not %d", cmd.Name(), what, len(args))
	}
}
