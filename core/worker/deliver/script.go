package deliver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/jsonvalue"
)

// Script writes a shell script that sets the parameters, a JSON object, and then executes the code. It ends at the
// first failed command. Names decides about the variables; none is exported. Values other than texts are JSON.
func Script(code string, params json.RawMessage, names Names) ([]byte, error) {
	fields, err := object(params)
	if err != nil {
		return nil, fmt.Errorf("write parameters into a script: %w", err)
	}
	variables, err := names.variables(slices.Sorted(maps.Keys(fields)))
	if err != nil {
		return nil, err
	}
	var script strings.Builder
	script.WriteString("#!/bin/bash\nset -e\n")
	for _, variable := range slices.Sorted(maps.Keys(variables)) {
		fmt.Fprintf(&script, "%s=%s\n", variable, quoted(shellValue(fields[variables[variable]])))
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
	if jsonvalue.None(raw) {
		return "null"
	}
	return scalar(raw)
}
