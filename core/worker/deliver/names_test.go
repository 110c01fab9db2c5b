package deliver_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/core/worker/deliver"
)

// Two parameters that become one variable are refused, unless the action declares both.
func TestParametersDoNotReplaceEachOther(t *testing.T) {
	t.Parallel()
	names := deliver.Names{Declared: func(name string) bool {
		return slices.Contains([]string{"declared", "Declared", "de-clared", "de clared", "PARAM_X"}, name)
	}}
	for params, want := range map[string]struct{ dotenv, script string }{
		`{}`: {}, `null`: {},
		`{"a.b":1,"a":{"b":2},"c":[1,2]}`: {},
		`{"a-b":1,"a_b":2}`: {
			dotenv: `the parameter "a_b" becomes the same variable as "a-b": rename it, or declare it in the parameters of the action`,
			script: `the parameter "a_b" becomes the same variable as "a-b"`,
		},
		`{"a":1,"A":2}`:                 {dotenv: `"a" becomes the same variable as "A"`, script: `"a" becomes`},
		`{"declared":1,"Declared":2}`:   {},
		`{"declared":1,"dEclared":2}`:   {script: `"dEclared" becomes the same variable as "declared"`},
		`{"de-clared":1,"de clared":2}`: {},
		`{"de-clared":1,"de_clared":2}`: {script: `"de_clared" becomes the same variable as "de-clared"`},
		`{"PARAM_X":1,"x":2}`:           {dotenv: `"x" becomes the same variable as "PARAM_X"`, script: `"x" becomes`},
	} {
		_, lines := deliver.Encode(deliver.FormatDotenv, json.RawMessage(params), names)
		_, script := deliver.Script("", json.RawMessage(params), names)
		for kind, c := range map[string]struct {
			err  error
			want string
		}{"dotenv": {lines, want.dotenv}, "script": {script, want.script}} {
			if c.want == "" {
				require.NoError(t, c.err, "%s of %s", kind, params)
			} else {
				require.ErrorContains(t, c.err, c.want, "%s of %s", kind, params)
			}
		}
	}
	_, err := deliver.Encode(deliver.FormatDotenv, json.RawMessage(`[]`), names)
	require.Error(t, err)
}

// documented are special variables that a fresh shell does not list, and variables of interpreters and programs.
const documented = `BASH_ARGV0 BASH_ENV BASH_LOADABLES_PATH BASH_XTRACEFD CDPATH CHILD_MAX COMPREPLY COMP_CWORD COMP_KEY
	COMP_LINE COMP_POINT COMP_TYPE COMP_WORDS COPROC EMACS ENV EPOCHREALTIME EPOCHSECONDS EXECIGNORE FCEDIT FIGNORE
	FPATH FUNCNAME FUNCNEST GLOBIGNORE GLOBSORT HISTCMD HISTCONTROL HISTFILE HISTFILESIZE HISTIGNORE HISTSIZE
	HISTTIMEFORMAT HOSTFILE IGNOREEOF INPUTRC INSIDE_EMACS LC_ALL LC_CTYPE LINES COLUMNS MAILCHECK MAILPATH MAPFILE
	OLDPWD OPTERR POSIXLY_CORRECT PROMPT_COMMAND PROMPT_DIRTRIM PS0 PS1 PS2 PS3 RANDOM READLINE_LINE SECONDS SRANDOM
	TIMEFORMAT TMOUT auto_resume histchars HOME TMPDIR USER GIT_SSH_COMMAND GIT_CONFIG_COUNT GIT_EXEC_PATH LD_PRELOAD
	DYLD_INSERT_LIBRARIES PYTHONHOME PYTHONPATH PYTHONSTARTUP PYTHONUSERBASE NODE_OPTIONS NODE_PATH PERL5OPT RUBYOPT
	JAVA_TOOL_OPTIONS https_proxy ATTUNE_PARAMETER_FILE ATTUNE_API_TOKEN`

// Neither a script nor a sourced dotenv file runs a value or changes a variable that has a meaning for the shell or its
// programs, whether the action declares such a parameter or not.
func TestSpecialVariablesAreNotSet(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	environment := []string{"PATH=/usr/bin:/bin", "HOME=/", "USER=root", "KNOWN=1"}
	special := append(strings.Fields(documented), "KNOWN")
	for _, list := range [][]string{{bash, "-c", "compgen -v"}, {"/bin/sh", "-c", "set"}} {
		out, err := exec.CommandContext(t.Context(), "env", append([]string{"-i"}, list...)...).Output()
		require.NoError(t, err)
		for line := range strings.Lines(string(out)) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), "=")
			if regexp.MustCompile(`^\w+$`).MatchString(name) {
				special = append(special, name)
			}
		}
	}
	slices.Sort(special)
	special = slices.Compact(special)
	require.Greater(t, len(special), 100)

	// found prints the names of variables with a value of the parameters.
	const found = `{ set; env; } | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*HARM[F]UL.*/changed \1 ;/p'`
	for declared, isDeclared := range map[string]func(string) bool{
		"undeclared": nil, "declared": func(string) bool { return true },
	} {
		for form, suffix := range map[string]string{
			"": "", "append": "+", "blank": " ", "element": "[0]", "dotted": ".",
		} {
			t.Run(strings.Trim(declared+"-"+form, "-"), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				made := filepath.Join(dir, "made")
				params := map[string]string{"harmless": "yes"}
				for i, name := range special {
					params[name+suffix] = fmt.Sprintf("a[$(touch %s-%s)]HARMFUL%d", made, name, i)
				}
				raw, err := json.Marshal(params)
				require.NoError(t, err)
				names := deliver.Names{Declared: isDeclared, Environment: environment}
				run := func(program string, content []byte, code string) {
					path, remove, err := deliver.ScriptFile(dir, "parameters", content)
					require.NoError(t, err)
					defer remove()
					cmd := exec.CommandContext(t.Context(), program, "-c", code, "test", path)
					cmd.Env, cmd.Dir = environment, dir
					out, _ := cmd.CombinedOutput() // a shell that a variable has stopped prints no "end"
					require.Contains(t, string(out), "end\n", program)
					for _, name := range special {
						require.NotContains(t, string(out), "changed "+name+" ;", program)
					}
					left, err := filepath.Glob(made + "*")
					require.NoError(t, err)
					require.Empty(t, left, program)
				}
				lines, err := deliver.Encode(deliver.FormatDotenv, raw, names)
				require.NoError(t, err)
				for _, program := range []string{bash, "/bin/sh"} {
					run(program, lines, `set -a; . "$1" 2>/dev/null; : "$RANDOM $OPTIND $SECONDS"; `+found+`; echo end`)
				}
				script, err := deliver.Script(`: "$RANDOM $OPTIND $SECONDS"; `+found+`; echo end`, raw, names)
				require.NoError(t, err)
				run(bash, script, `exec bash "$1"`)
			})
		}
	}
}
