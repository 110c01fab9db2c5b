package deliver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// reserved are variables that a shell refuses to set, or that change how it works.
var reserved = []string{"ENV", "EUID", "GLOBIGNORE", "IFS", "POSIXLY_CORRECT", "PPID", "PS4", "SHELLOPTS", "UID"}

// exported are further variables that change how a shell or its programs work.
var exported = []string{
	"CDPATH", "GIT_SSH", "GIT_SSH_COMMAND", "JAVA_TOOL_OPTIONS", "NODE_OPTIONS", "PATH", "PERL5LIB", "PERL5OPT",
	"PROMPT_COMMAND", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "RUBYLIB", "RUBYOPT",
}

// special reports whether a variable changes how a shell works, or is one of Attune.
func special(name string) bool {
	return slices.Contains(reserved, name) || slices.ContainsFunc([]string{"ATTUNE_", "BASH", "DYLD_", "LD_"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// CheckLines refuses parameters that must not be lines of a dotenv file, which shells source: a name that changes how a
// shell works, and two names of one variable. It refuses no trusted names.
func CheckLines(params json.RawMessage, trusted func(name string) bool) error {
	names, err := namesOf(params)
	if err != nil {
		return err
	}
	for _, name := range names {
		if as := lineName(name); (special(as) || slices.Contains(exported, as)) && !trusted(name) {
			return fmt.Errorf("the parameter %q would change how a shell works: %s", name, advice)
		}
	}
	return collide(names, shellName, trusted)
}

// CheckVariables refuses parameters that become the same variable PARAM_NAME of a Script. It refuses no trusted names.
func CheckVariables(params json.RawMessage, trusted func(name string) bool) error {
	names, err := namesOf(params)
	if err != nil {
		return err
	}
	return collide(names, parameterVariable, trusted)
}

const advice = "rename it, or declare it in the parameters of the action"

func namesOf(params json.RawMessage) ([]string, error) {
	fields, err := object(params)
	if err != nil {
		return nil, fmt.Errorf("read the names of parameters: %w", err)
	}
	return slices.Sorted(maps.Keys(fields)), nil
}

// collide fails if two names become one and one of them is not trusted.
func collide(names []string, become func(string) string, trusted func(string) bool) error {
	taken := map[string]string{}
	for _, name := range names {
		as := become(name)
		other, collides := taken[as]
		if collides && (!trusted(name) || !trusted(other)) {
			if trusted(name) {
				name, other = other, name
			}
			return fmt.Errorf("the parameter %q becomes the same variable as %q: %s", name, other, advice)
		}
		taken[as] = name
	}
	return nil
}

// shellName replaces characters by underscores that no shell accepts in a name.
func shellName(name string) string {
	return strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			return c
		}
		return '_'
	}, name)
}

func parameterVariable(name string) string { return "PARAM_" + strings.ToUpper(shellName(name)) }
