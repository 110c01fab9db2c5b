package worker

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/placement"
)

const (
	shell  = "shell"
	native = "native"

	tempFile = "temp_file"
)

// extensions maps file extensions to the runtimes of actions that name none.
var extensions = map[string]string{
	".sh": shell, ".bash": shell, ".py": "python", ".js": "node", ".mjs": "node", ".cjs": "node", ".rb": "ruby",
	".pl": "perl",
	".r":  "r",
}

// executionConfig is the part of runtime.execution_config that a worker uses.
type executionConfig struct {
	Interpreter struct {
		Binary string   `json:"binary"`
		Args   []string `json:"args"`
	} `json:"interpreter"`
	Inline       inlineExecution    `json:"inline_execution"`
	Environment  runtimeEnvironment `json:"environment"`
	Dependencies struct {
		ManifestFile string `json:"manifest_file"`
	} `json:"dependencies"`
	EnvVars map[string]environmentVariable `json:"env_vars"`
}

// runtimeEnvironment is where the dependencies of a pack are installed. A worker uses an existing
// environment, and creates none.
type runtimeEnvironment struct {
	DirName         string `json:"dir_name"`
	InterpreterPath string `json:"interpreter_path"`
}

// inlineExecution is how an interpreter gets code: as an argument, or in a temporary file, which
// may start with the parameters as shell variables.
type inlineExecution struct {
	Strategy           string `json:"strategy"`
	Extension          string `json:"extension"`
	InjectShellHelpers bool   `json:"inject_shell_helpers"`
}

// environmentVariable is a value, or how it is joined to an existing value.
type environmentVariable struct {
	Value     string `json:"value"`
	Operation string `json:"operation"`
	Separator string `json:"separator"`
}

// UnmarshalJSON also accepts a plain string as the value.
func (v *environmentVariable) UnmarshalJSON(raw []byte) error {
	*v = environmentVariable{Separator: ":"}
	if json.Unmarshal(raw, &v.Value) == nil {
		return nil
	}
	type plain environmentVariable
	return json.Unmarshal(raw, (*plain)(v))
}

// launcher is how a runtime executes one action.
type launcher struct {
	command []string // the interpreter and its arguments; empty: the file is a program
	inline  inlineExecution
	vars    map[string]environmentVariable
	values  *strings.Replacer // of templates such as {pack_dir}
}

// runtime finds the interpreter of an action, in this order: worker.interpreters, the environment
// of its pack, the chosen version of its runtime, the runtime's own row, and what this machine has.
func (r *runner) runtime(row started, c content, packDir string) (launcher, error) {
	name := placement.NormalizeRuntime(text(row.Runtime))
	if name == "" {
		name = extensions[strings.ToLower(filepath.Ext(c.file))]
	}
	raw, environment := row.ExecutionConfig, strings.ToLower(text(row.Runtime))
	version, ok, err := r.version(row)
	if err != nil {
		return launcher{}, err
	}
	if ok {
		raw, environment = version.ExecutionConfig, environment+"-"+version.Version
	}
	var config executionConfig
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &config); err != nil {
			return launcher{}, fmt.Errorf("read execution_config of the runtime %s: %w", text(row.Runtime), err)
		}
	}
	found := launcher{inline: config.Inline, vars: config.EnvVars}
	if config.Interpreter.Binary == "" && config.Inline == (inlineExecution{}) {
		found.inline = inlineExecution{Strategy: tempFile, Extension: ".sh", InjectShellHelpers: true}
	}
	envDir := r.envDir(row, config, environment, packDir)
	known, offered := r.cfg.Interpreters[name]
	switch {
	case name == "" || name == native:
		if info, err := os.Stat(c.file); err == nil && info.Mode().Perm()&0o111 == 0 {
			return launcher{}, fmt.Errorf("entrypoint %s is not executable", c.file)
		}
	case r.cfg.chosen[name]:
		found.command = slices.Clone(known)
	case config.Interpreter.Binary != "":
		found.command = append([]string{config.Interpreter.Binary}, config.Interpreter.Args...)
		own := strings.NewReplacer("{env_dir}", envDir, "{pack_dir}",
			packDir).Replace(config.Environment.InterpreterPath)
		if envDir != "" && isFile(own) {
			found.command[0] = own
		}
	case offered:
		found.command = slices.Clone(known)
	default:
		return launcher{}, fmt.Errorf("this worker does not offer the runtime %s", name)
	}
	interpreter := ""
	if len(found.command) > 0 {
		interpreter = found.command[0]
	}
	found.values = strings.NewReplacer("{pack_dir}", packDir, "{env_dir}", envDir, "{interpreter}", interpreter,
		"{manifest_path}", filepath.Join(packDir, config.Dependencies.ManifestFile))
	return found, nil
}

// envDir is the environment of a runtime for a pack, whether it exists or not. Each version has its
// own name.
func (r *runner) envDir(row started, config executionConfig, environment, packDir string) string {
	switch {
	case config.Environment == (runtimeEnvironment{}):
		return ""
	case r.cfg.RuntimeEnvsDir != "":
		return filepath.Join(r.cfg.RuntimeEnvsDir, text(row.PackRef), environment)
	case packDir != "" && config.Environment.DirName != "":
		return filepath.Join(packDir, config.Environment.DirName)
	}
	return ""
}

// environment adds the variables of the runtime.
func (l launcher) environment(env []string) []string {
	for _, name := range slices.Sorted(maps.Keys(l.vars)) {
		if !envName(name) {
			continue
		}
		v := l.vars[name]
		value, before := l.values.Replace(v.Value), lookup(env, name)
		switch {
		case before == "":
		case v.Operation == "prepend":
			value += v.Separator + before
		case v.Operation == "append":
			value = before + v.Separator + value
		}
		env = append(env, variable(name, value))
	}
	return env
}

// file is the command that executes a file. Bash reads a script while it runs it, and would go on in another version if
// the file is overwritten; it reads a sourced file as a whole.
func (l launcher) file(path string) []string {
	command := slices.Clip(l.command)
	if len(command) == 0 || slices.Contains(command, "--") {
		return append(command, path)
	}
	program := command[0]
	if filepath.Base(program) == "env" && len(command) > 1 {
		program = command[1]
	}
	if filepath.Base(program) != "bash" {
		return append(command, path)
	}
	return append(command, "-c", `. "$0"`, path)
}

func (l launcher) extension() string {
	if l.inline.Extension == "" || strings.HasPrefix(l.inline.Extension, ".") {
		return l.inline.Extension
	}
	return "." + l.inline.Extension
}
