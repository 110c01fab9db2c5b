package worker

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/worker/deliver"
)

// program is what to start for an action.
type program struct {
	args []string
	dir  string
}

// resolve finds the entrypoint of an action and how to run it. Errors say what
// is missing, since they become the result that the author of the action reads.
func (r *runner) resolve(row store.StartExecutionsRow) (program, error) {
	if row.Entrypoint == nil {
		return program{}, fmt.Errorf("action %s does not exist (any more)", row.ActionRef)
	}
	path, dir, err := r.locate(row)
	if err != nil {
		return program{}, err
	}
	runtime := placement.NormalizeRuntime(text(row.Runtime))
	if runtime == "" && strings.HasSuffix(path, ".sh") {
		runtime = "shell"
	}
	if runtime == "" || runtime == "native" {
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm()&0o111 == 0 {
			return program{}, fmt.Errorf("action %s: entrypoint %s is not executable", row.ActionRef, path)
		}
		return program{args: []string{path}, dir: dir}, nil
	}
	interpreter, ok := r.cfg.Interpreters[runtime]
	if !ok {
		return program{}, fmt.Errorf("action %s: this worker does not offer the runtime %s", row.ActionRef, runtime)
	}
	return program{args: append(slices.Clip(interpreter), path), dir: dir}, nil
}

// locate returns the file of the entrypoint and the folder to run it in. A
// relative entrypoint cannot leave its pack.
func (r *runner) locate(row store.StartExecutionsRow) (path, dir string, err error) {
	entrypoint, pack := *row.Entrypoint, text(row.PackRef)
	if filepath.IsAbs(entrypoint) {
		if !isFile(entrypoint) {
			return "", "", fmt.Errorf("action %s: entrypoint %s is not a file on this worker", row.ActionRef, entrypoint)
		}
		return entrypoint, filepath.Dir(entrypoint), nil
	}
	if r.cfg.PacksDir == "" {
		return "", "", fmt.Errorf("action %s: entrypoint %q is no function of this worker, which has no folder of packs",
			row.ActionRef, entrypoint)
	}
	if !filepath.IsLocal(entrypoint) || !filepath.IsLocal(pack) {
		return "", "", fmt.Errorf("action %s: entrypoint %q lies outside its pack", row.ActionRef, entrypoint)
	}
	dir = filepath.Join(r.cfg.PacksDir, pack)
	for _, path := range []string{filepath.Join(dir, "actions", entrypoint), filepath.Join(dir, entrypoint)} {
		if isFile(path) {
			return path, dir, nil
		}
	}
	return "", "", fmt.Errorf("action %s: entrypoint %q is neither a function of this worker nor a file of pack %s",
		row.ActionRef, entrypoint, pack)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// environment is what a process of this execution is started with.
func (r *runner) environment(row store.StartExecutionsRow) []string {
	return append(slices.Clip(r.env),
		"ATTUNE_EXEC_ID="+strconv.FormatInt(row.ID, 10),
		"ATTUNE_ACTION="+row.ActionRef,
		"ATTUNE_PACK_REF="+text(row.PackRef),
		"ATTUNE_RULE="+text(row.RuleRef),
		"ATTUNE_TRIGGER="+text(row.TriggerRef),
	)
}

// ParameterFileVariable names the file with the parameters when an action asks
// for delivery by file.
const ParameterFileVariable = "ATTUNE_PARAMETER_FILE"

// input is how the parameters reach a process.
type input struct {
	stdin  io.Reader
	env    []string
	remove func()
}

func (r *runner) prepare(row store.StartExecutionsRow, params []byte) (input, error) {
	content, err := deliver.Encode(text(row.ParameterFormat), params)
	if err != nil {
		return input{}, fmt.Errorf("action %s: %w", row.ActionRef, err)
	}
	if text(row.ParameterDelivery) != deliver.DeliveryFile {
		return input{stdin: bytes.NewReader(content), remove: func() {}}, nil
	}
	path, remove, err := deliver.File(r.cfg.TempDir, content)
	if err != nil {
		return input{}, fmt.Errorf("action %s: %w", row.ActionRef, err)
	}
	return input{env: []string{ParameterFileVariable + "=" + path}, remove: remove}, nil
}
