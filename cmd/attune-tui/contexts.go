package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/tui/settings"
)

// contextEntry is a context in the output of --contexts.
type contextEntry struct {
	Name       string `json:"name"`
	Default    bool   `json:"default"`
	ReadOnly   bool   `json:"read_only"`
	Protected  bool   `json:"protected"`
	Colour     string `json:"colour,omitempty"`
	Schema     string `json:"schema,omitempty"`
	Database   string `json:"database_url"`
	Broker     string `json:"broker_url,omitempty"`
	Management string `json:"management_url,omitempty"`
	At         string `json:"at"`
}

// contexts lists the contexts. It neither connects nor resolves references.
func contexts(file *settings.Settings, output string) ([]byte, error) {
	entries := make([]contextEntry, len(file.Contexts))
	for i, c := range file.Contexts {
		entries[i] = contextEntry{
			Name: c.Name, Default: c.Name == file.DefaultContext, ReadOnly: c.ReadOnly, Protected: c.Protected,
			Colour: c.Colour,
			Schema: c.Schema, Database: c.Database.Show(), Broker: c.Broker.Show(), Management: c.Management.Show(),
			At: c.At,
		}
	}
	if output == "json" {
		out, err := json.MarshalIndent(entries, "", "  ")
		return append(out, '\n'), err
	}
	if len(entries) == 0 {
		return []byte("There are no contexts: " + noContexts(file) + "\n"), nil
	}
	var b strings.Builder
	b.WriteString("NAME\tMODE\tDATABASE\tBROKER\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", e.Name, e.mode(), e.Database, cmp.Or(e.Broker, "-"))
	}
	return []byte(phrase.Align(b.String())), nil
}

func noContexts(file *settings.Settings) string {
	switch {
	case file.Path == "":
		return "neither XDG_CONFIG_HOME nor HOME says where tui.yaml is."
	case !file.Found:
		return file.Path + " does not exist."
	default:
		return file.Path + " names none."
	}
}

func (e contextEntry) mode() string {
	words := []string{"RW"}
	if e.ReadOnly {
		words[0] = "RO"
	}
	if e.Protected {
		words = append(words, "protected")
	}
	if e.Default {
		words = append(words, "default")
	}
	return strings.Join(words, " ")
}
