package deliver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// identifier matches the name of a variable in a shell.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Script writes a shell script that sets the parameters, a JSON object, and then executes the code. It ends at the
// first failed command. A parameter is the variable PARAM_NAME, with underscores for characters that no shell accepts.
// It is also the variable of its own name, if that is valid and not in the environment, so that no parameter changes
// the meaning of commands. Neither is exported. Values other than texts are JSON.
func Script(code string, params json.RawMessage, environment []string) ([]byte, error) {
	fields, err := object(params)
	if err != nil {
		return nil, fmt.Errorf("write parameters into a script: %w", err)
	}
	taken := map[string]bool{}
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		taken[name] = true
	}
	upper := map[string]string{} // the parameter that is PARAM_NAME
	names := slices.Sorted(maps.Keys(fields))
	for _, name := range names {
		as := parameterVariable(name)
		if _, have := upper[as]; !have || identifier.MatchString(name) {
			upper[as] = name
		}
	}
	var script strings.Builder
	script.WriteString("#!/bin/bash\nset -e\n")
	for _, as := range slices.Sorted(maps.Keys(upper)) {
		fmt.Fprintf(&script, "%s=%s\n", as, quoted(shellValue(fields[upper[as]])))
	}
	for _, name := range names {
		_, parameter := upper[name] // PARAM_X given as a parameter does not replace x
		if identifier.MatchString(name) && !taken[name] && !parameter && !special(name) {
			fmt.Fprintf(&script, "%s=%s\n", name, quoted(shellValue(fields[name])))
		}
	}
	script.WriteString(code)
	if !strings.HasSuffix(code, "\n") {
		script.WriteString("\n")
	}
	return []byte(script.String()), nil
}

// ScriptFile writes a script to a file that only its owner can read, in a new folder below dir, and returns its path
// and a function that removes both. An empty dir is the folder for temporary files.
func ScriptFile(dir, name string, content []byte) (path string, remove func(), err error) {
	folder, err := os.MkdirTemp(dir, "attune-inline-*") // made with mode 0700
	if err != nil {
		return "", nil, fmt.Errorf("create script: %w", err)
	}
	remove = func() { _ = os.RemoveAll(folder) }
	path = filepath.Join(folder, name)
	if filepath.Dir(path) != folder {
		err = errors.New("its name leads out of its folder")
	} else {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("write script: %w", err)
	}
	return path, remove, nil
}

// shellValue is the text of a value; null is JSON too.
func shellValue(raw json.RawMessage) string {
	if isNull(raw) {
		return "null"
	}
	return scalar(raw)
}
