package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/attune-go/attune/tui/app"
	"github.com/attune-go/attune/tui/theme"
)

// completed are the values of flags that completion offers.
func completed() map[string][]string {
	views := strings.Split(app.Names(app.Views), ", ")
	return map[string][]string{
		"view":       views,
		"snapshot":   append(views, "execution", "queue", "worker", "letter", "xray", "log", "help"),
		"theme":      theme.Names,
		"output":     {"text", "json"},
		"completion": {"bash", "zsh", "fish"},
	}
}

// completion is the script that completes the flags in a shell.
func completion(shell string) (string, error) {
	switch shell {
	case "bash":
		return bashCompletion(), nil
	case "zsh":
		return zshCompletion(), nil
	case "fish":
		return fishCompletion(), nil
	}
	return "", fmt.Errorf("there is no completion for %q: choose bash, zsh or fish", shell)
}

func bashCompletion() string {
	var names, cases strings.Builder
	values := completed()
	flags(&options{}).VisitAll(func(f *pflag.Flag) {
		names.WriteString(" --" + f.Name)
		spelt := "--" + f.Name
		if f.Shorthand != "" {
			spelt += "|-" + f.Shorthand
		}
		switch {
		case values[f.Name] != nil:
			fmt.Fprintf(&cases, "\t%s) COMPREPLY=($(compgen -W '%s' -- \"$word\")) ;;\n", spelt,
				strings.Join(values[f.Name], " "))
		case f.Name == "config":
			fmt.Fprintf(&cases, "\t%s) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n", spelt)
		case f.NoOptDefVal == "":
			fmt.Fprintf(&cases, "\t%s) COMPREPLY=() ;;\n", spelt)
		}
	})
	return `# bash completion of attune-tui
_attune_tui() {
	local word=${COMP_WORDS[COMP_CWORD]}
	case ${COMP_WORDS[COMP_CWORD-1]} in
` + cases.String() + "\t*) COMPREPLY=($(compgen -W '" + strings.TrimSpace(names.String()) + `' -- "$word")) ;;
	esac
}
complete -F _attune_tui attune-tui
`
}

func zshCompletion() string {
	var b strings.Builder
	b.WriteString("#compdef attune-tui\n_arguments -s \\\n")
	values := completed()
	quote := strings.NewReplacer("'", `'\''`, "[", `\[`, "]", `\]`)
	flags(&options{}).VisitAll(func(f *pflag.Flag) {
		name, usage := pflag.UnquoteUsage(f)
		value := ""
		switch {
		case values[f.Name] != nil:
			value = ":" + f.Name + ":(" + strings.Join(values[f.Name], " ") + ")"
		case f.Name == "config":
			value = ":file:_files"
		case f.NoOptDefVal == "":
			value = ":" + strings.ToLower(name) + ":"
		}
		spelt := "'--" + f.Name
		if f.Shorthand != "" {
			spelt = "'(-" + f.Shorthand + " --" + f.Name + ")'{-" + f.Shorthand + ",--" + f.Name + "}'"
		}
		fmt.Fprintf(&b, "\t%s[%s]%s' \\\n", spelt, quote.Replace(usage), value)
	})
	return strings.TrimSuffix(b.String(), " \\\n") + "\n"
}

func fishCompletion() string {
	var b strings.Builder
	b.WriteString("# fish completion of attune-tui\ncomplete -c attune-tui -f\n")
	values := completed()
	flags(&options{}).VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		b.WriteString("complete -c attune-tui -l " + f.Name)
		if f.Shorthand != "" {
			b.WriteString(" -s " + f.Shorthand)
		}
		switch {
		case values[f.Name] != nil:
			b.WriteString(" -x -a '" + strings.Join(values[f.Name], " ") + "'")
		case f.Name == "config":
			b.WriteString(" -r -F")
		case f.NoOptDefVal == "":
			b.WriteString(" -x")
		}
		b.WriteString(" -d '" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(usage) + "'\n")
	})
	return b.String()
}
