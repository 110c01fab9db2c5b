package deliver

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// identifier matches the name of a variable in a shell.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved are variables that a shell sets, obeys, or evaluates as an expression when they are assigned.
var reserved = strings.Fields(`CDPATH CHILD_MAX COLUMNS COMPREPLY COMP_CWORD COMP_KEY COMP_LINE COMP_POINT COMP_TYPE
	COMP_WORDBREAKS COMP_WORDS COPROC DIRSTACK EMACS ENV EPOCHREALTIME EPOCHSECONDS ERRNO EUID EXECIGNORE FCEDIT FIGNORE
	FPATH FUNCNAME FUNCNEST GLOBIGNORE GLOBSORT GROUPS HISTCMD HISTCONTROL HISTFILE HISTFILESIZE HISTIGNORE HISTSIZE
	HISTTIMEFORMAT HOME HOSTFILE HOSTNAME HOSTTYPE IFS IGNOREEOF INPUTRC INSIDE_EMACS LANG LINENO LINES MACHTYPE
	MAILCHECK MAILPATH MAPFILE OLDPWD OPTERR OPTIND OSTYPE PATH PIPESTATUS POSIXLY_CORRECT POSIX_PEDANTIC PPID
	PROMPT_COMMAND PROMPT_DIRTRIM PS0 PS1 PS2 PS3 PS4 PWD RANDOM SECONDS SHELL SHELLOPTS SHLVL SRANDOM TERM TIMEFORMAT
	TMOUT UID _ auto_resume histchars`)

// obeyed are variables that make common programs execute, load or trust something else.
var obeyed = strings.Fields(`ALL_PROXY CLASSPATH EDITOR FTP_PROXY GCONV_PATH GIT_ASKPASS GIT_DIR GIT_EDITOR
	GIT_EXEC_PATH GIT_EXTERNAL_DIFF GIT_PAGER GIT_PROXY_COMMAND GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND
	GIT_TEMPLATE_DIR GIT_WORK_TREE HTTPS_PROXY HTTP_PROXY JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS LESSCLOSE LESSOPEN
	NODE_CHANNEL_FD NODE_EXTRA_CA_CERTS NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE NODE_TLS_REJECT_UNAUTHORIZED
	NO_PROXY OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES PAGER PERLLIB RUBYLIB RUBYOPT SSH_ASKPASS SSH_AUTH_SOCK
	SSL_CERT_DIR SSL_CERT_FILE TEMP TMP TMPDIR VISUAL _JAVA_OPTIONS all_proxy ftp_proxy http_proxy https_proxy
	no_proxy`)

// families begin further such variables.
var families = strings.Fields("BASH DYLD_ GIT_CONFIG LC_ LD_ NPM_CONFIG_ PERL5 READLINE_ npm_config_")

// python matches the variables of the interpreter, such as PYTHONPATH.
var python = regexp.MustCompile(`^PYTHON([A-Z]|_(GIL|COLORS|CPU_COUNT|BASIC_REPL|HISTORY|DISABLE_REMOTE_DEBUG)$)`)

// special reports whether a variable changes how a shell or a program works, or is one of Attune.
func special(name string) bool {
	return slices.Contains(reserved, name) || slices.Contains(obeyed, name) || python.MatchString(name) ||
		strings.HasPrefix(name, "ATTUNE_") && !strings.HasPrefix(name, "ATTUNE_ACTION_") ||
		slices.ContainsFunc(families, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// Names decides which variables the parameters become in a file that a shell executes or sources. Requesters choose the
// names of undeclared parameters, so these are only PARAM_NAME. A declared parameter also has its own name, unless the
// environment has a variable of that name or the variable would change how a shell or a program works.
type Names struct {
	// Declared reports whether the action declares a parameter, or the keystore has it. Nil declares none.
	Declared func(name string) bool
	// Environment is that of the process, in the form of os.Environ.
	Environment []string
}

func (n Names) declared(name string) bool { return n.Declared != nil && n.Declared(name) }

// own reports whether a parameter may be the variable of its own name.
func (n Names) own(name, variable string) bool {
	return n.declared(name) && !special(variable) &&
		!slices.ContainsFunc(n.Environment, func(entry string) bool { return strings.HasPrefix(entry, variable+"=") })
}

// variables are the parameters by their variables in a script. Of two declared parameters that are one PARAM_NAME, the
// one whose name a shell accepts wins; a parameter called PARAM_NAME does not replace that of NAME. It is an error if
// one of two is undeclared.
func (n Names) variables(params []string) (map[string]string, error) {
	taken := map[string]string{}
	for _, name := range params {
		variable := parameterVariable(name)
		if err := n.collide(taken, variable, name); err != nil {
			return nil, err
		}
		if _, have := taken[variable]; !have || identifier.MatchString(name) {
			taken[variable] = name
		}
	}
	for _, name := range params {
		if !identifier.MatchString(name) || !n.own(name, name) {
			continue
		}
		if err := n.collide(taken, name, name); err != nil {
			return nil, err
		}
		taken[name] = cmp.Or(taken[name], name)
	}
	return taken, nil
}

// lines are the parameters by their names in a dotenv file. The names of declared parameters need not be identifiers.
func (n Names) lines(params []string) (map[string]string, error) {
	names, taken := map[string]string{}, map[string]string{}
	for _, name := range params {
		line := lineName(name)
		if !n.own(name, line) {
			line = parameterVariable(name)
		}
		if err := n.collide(taken, line, name); err != nil {
			return nil, err
		}
		names[name], taken[line] = line, name
	}
	return names, nil
}

// collide fails if a variable is that of another parameter and one of the two is undeclared.
func (n Names) collide(taken map[string]string, variable, name string) error {
	other, collides := taken[variable]
	if !collides || other == name || n.declared(name) && n.declared(other) {
		return nil
	}
	if n.declared(name) {
		name, other = other, name
	}
	return fmt.Errorf("the parameter %q becomes the same variable as %q: "+
		"rename it, or declare it in the parameters of the action", name, other)
}

// lineName replaces each character that could end the line, or begin something that a shell evaluates.
func lineName(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsMark(c) || unicode.IsDigit(c) || strings.ContainsRune("_-.:@,", c) {
			return c
		}
		return '_'
	}, name)
}

// parameterVariable replaces the characters that no shell accepts in a name.
func parameterVariable(name string) string {
	return "PARAM_" + strings.ToUpper(strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			return c
		}
		return '_'
	}, name))
}
