package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
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
