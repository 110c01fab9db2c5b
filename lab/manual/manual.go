// Package manual writes manual pages from the commands of a program.
package manual

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Commands writes a section for each command below parent, with its text, flags and examples.
func Commands(b *strings.Builder, parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if !cmd.IsAvailableCommand() {
			continue
		}
		if !cmd.HasSubCommands() {
			b.WriteString(`.SS "` + Escape(strings.TrimSuffix(cmd.UseLine(), " [flags]")) + "\"\n")
			text := cmd.Long
			if text == "" {
				text = cmd.Short + "."
			}
			Text(b, text)
			cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { Flag(b, f) })
			if cmd.Example != "" {
				b.WriteString(".PP\n.nf\n" + lines(cmd.Example) + ".fi\n")
			}
		}
		Commands(b, cmd)
	}
}

// Flag writes a flag with its meaning.
func Flag(b *strings.Builder, f *pflag.Flag) {
	name, usage := pflag.UnquoteUsage(f)
	b.WriteString(".TP\n")
	if f.Shorthand != "" {
		b.WriteString(`\fB\-` + f.Shorthand + `\fR, `)
	}
	b.WriteString(`\fB\-\-` + Escape(f.Name) + `\fR`)
	if name != "" {
		b.WriteString(` \fI` + Escape(name) + `\fR`)
	}
	b.WriteString("\n" + Escape(usage) + "\n")
}

// Text writes paragraphs, which an empty line divides.
func Text(b *strings.Builder, text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(lines(paragraph))
	}
}

func lines(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(Escape(line) + "\n")
	}
	return b.String()
}
