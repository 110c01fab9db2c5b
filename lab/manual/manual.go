// Package manual writes manual pages from the commands of a program.
package manual

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Page is the manual page of a program, with every command and flag. summary is its line of the section NAME, rest
// what follows the commands.
func Page(root *cobra.Command, summary, rest string) string {
	var b strings.Builder
	name := Escape(root.Name())
	b.WriteString(`.\" Made from the commands of the program; do not edit.
.TH ` + strings.ToUpper(name) + ` 1 "" "attune" "User Commands"
.SH NAME
` + name + ` \- ` + summary + `
.SH SYNOPSIS
.B ` + name + `
.I command
.RI [ argument ...]
.RI [ flag ...]
.SH DESCRIPTION
`)
	text(&b, root.Long)
	b.WriteString(".SH OPTIONS\nEvery command has these flags.\n")
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { flag(&b, f) })
	b.WriteString(".SH COMMANDS\n")
	commands(&b, root)
	b.WriteString(rest)
	return b.String()
}

// commands writes a section for each command below parent, with its text, flags and examples.
func commands(b *strings.Builder, parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if !cmd.IsAvailableCommand() {
			continue
		}
		if !cmd.HasSubCommands() {
			b.WriteString(`.SS "` + Escape(strings.TrimSuffix(cmd.UseLine(), " [flags]")) + "\"\n")
			words := cmd.Long
			if words == "" {
				words = cmd.Short + "."
			}
			text(b, words)
			cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { flag(b, f) })
			if cmd.Example != "" {
				b.WriteString(".PP\n.nf\n" + lines(cmd.Example) + ".fi\n")
			}
		}
		commands(b, cmd)
	}
}

// flag writes a flag with its meaning.
func flag(b *strings.Builder, f *pflag.Flag) {
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

// text writes paragraphs, which an empty line divides.
func text(b *strings.Builder, words string) {
	for i, paragraph := range strings.Split(words, "\n\n") {
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
