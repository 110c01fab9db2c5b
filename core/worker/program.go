package worker

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/placement"
	"github.com/attune-go/attune/core/worker/deliver"
)

// content is what an action executes: exactly one of fn, file and code is set.
type content struct {
	fn   Func
	file string
	code string
}

// find decides what an action executes. A file of its pack wins over a function, which wins over
// the text of the entry point as shell code. The name of a missing file is not shell code. Ad-hoc
// actions have no file unless their runtime is another one. Errors name what is missing, because the
// author of the action reads them in the result.
func (r *runner) find(row started) (content, error) {
	if row.Entrypoint == nil {
		return content{}, fmt.Errorf("action %s does not exist (any more)", row.ActionRef)
	}
	entrypoint := *row.Entrypoint
	packed := !row.IsAdhoc || strings.HasPrefix(text(row.PackRef), "core")
	var missing error
	if packed {
		var path string
		if path, missing = r.locate(row); missing == nil {
			return content{file: path}, nil
		}
		if errors.Is(missing, errLeavesPack) {
			return content{}, fmt.Errorf("action %s: %w", row.ActionRef, missing)
		}
	}
	if fn := r.cfg.Actions.find(row.ActionRef, entrypoint); fn != nil {
		return content{fn: fn}, nil
	}
	code := strings.TrimSpace(entrypoint) != "" && !(packed && pack.NamesFile(entrypoint))
	if code && placement.NormalizeRuntime(text(row.Runtime)) == shell {
		if packed {
			r.logger.Warn("Entry point is no file and is run as shell code", "execution_id", row.ID,
				"action_ref", row.ActionRef, "reason", missing)
		}
		return content{code: entrypoint}, nil
	}
	if !packed {
		var path string
		if path, missing = r.locate(row); missing == nil {
			return content{file: path}, nil
		}
	}
	return content{}, fmt.Errorf( //nolint:staticcheck // published text
		"No executable content found for action '%s': %w", row.ActionRef, missing)
}

// errLeavesPack refuses an entry point that leaves its pack through a link.
var errLeavesPack = errors.New("it leads out of its pack by a link")

// locate returns the file of an entry point, or why there is none. A relative entry point cannot
// leave its pack, not even through links.
func (r *runner) locate(row started) (string, error) {
	entrypoint, ref := *row.Entrypoint, text(row.PackRef)
	switch {
	case entrypoint == "":
		return "", errors.New("its entry point is empty")
	case filepath.IsAbs(entrypoint):
		if isFile(entrypoint) {
			return entrypoint, nil
		}
		return "", fmt.Errorf("%q is not a file on this worker", shortened(entrypoint))
	case r.cfg.PacksDir == "":
		return "", fmt.Errorf("%q is no function of this worker, which has no folder of packs", shortened(entrypoint))
	case !filepath.IsLocal(entrypoint) || !filepath.IsLocal(ref):
		return "", fmt.Errorf("%q lies outside its pack", shortened(entrypoint))
	}
	dir := filepath.Join(r.cfg.PacksDir, ref)
	candidates := []string{filepath.Join(dir, "actions", entrypoint), filepath.Join(dir, entrypoint)}
	for _, path := range candidates {
		if !isFile(path) {
			continue
		}
		if !catalog.Inside(dir, path) {
			return "", fmt.Errorf("%q is refused: %w", shortened(entrypoint), errLeavesPack)
		}
		return path, nil
	}
	for _, path := range candidates {
		if why := notFile(path); why != "" {
			return "", fmt.Errorf("file %q of pack %s cannot be run: %s %s, and no function of this worker has its name",
				shortened(entrypoint), ref, shortened(path), why)
		}
	}
	return "", fmt.Errorf("file %q of pack %s is missing: there is no %s, and no function of this worker has its name",
		shortened(entrypoint), ref, shortened(candidates[0]))
}

// notFile says why a path that exists is no file to run; empty if there is nothing.
func notFile(path string) string {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return "is a folder"
	case err == nil:
		return "is not a regular file"
	case errors.Is(err, fs.ErrPermission):
		return "cannot be read by this worker"
	}
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// shortened bounds a text that may be a whole script.
func shortened(text string) string {
	const longest = 200
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}

// packDir is the working directory of an action: its pack's, or its file's if that lies elsewhere,
// or the worker's own.
func (r *runner) packDir(row started, c content) string {
	if filepath.IsAbs(*row.Entrypoint) && c.file != "" {
		return filepath.Dir(c.file)
	}
	ref := text(row.PackRef)
	if r.cfg.PacksDir == "" || !filepath.IsLocal(ref) {
		return ""
	}
	dir := filepath.Join(r.cfg.PacksDir, ref)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// ParameterFileVariable names the parameter file if the action requests delivery by file.
const ParameterFileVariable = "ATTUNE_PARAMETER_FILE"

// program is the process of an action. Its files exist until remove is called.
type program struct {
	args   []string
	dir    string
	env    []string
	stdin  io.Reader // nil is empty
	remove func()
}

// program prepares the process of an action: its interpreter, its environment, its parameters and a
// folder for temporary files. It completes the given environment. Untrusted parameters cannot have
// every name.
func (r *runner) program(
	row started, c content, params []byte, trusted func(string) bool, env []string,
) (p program, err error) {
	folder, remove, err := r.separation.folder()
	if err != nil {
		return program{}, fmt.Errorf("action %s: %w", row.ActionRef, err)
	}
	defer func() {
		if err == nil {
			err = r.separation.own(folder)
		}
		if err != nil {
			remove()
			err = fmt.Errorf("action %s: %w", row.ActionRef, err)
		}
	}()
	p = program{dir: r.packDir(row, c), remove: remove}
	delivery := cmp.Or(text(row.ParameterDelivery), deliver.DeliveryStdin)
	format := cmp.Or(text(row.ParameterFormat), deliver.FormatJSON)
	p.env = append(slices.Clip(env), r.separation.environment(folder)...)
	p.env = append(p.env, "ATTUNE_PARAMETER_DELIVERY="+delivery, "ATTUNE_PARAMETER_FORMAT="+format)
	launch, err := r.runtime(row, c, p.dir)
	if err != nil {
		return program{}, err
	}
	p.env = launch.environment(p.env)
	names := deliver.Names{Declared: trusted, Environment: p.env}
	encoded, err := deliver.Encode(format, params, names)
	if err != nil {
		return program{}, err
	}
	p.stdin = bytes.NewReader(encoded)
	if delivery == deliver.DeliveryFile {
		path, _, err := deliver.File(folder, encoded) // removed with its folder
		if err != nil {
			return program{}, err
		}
		p.stdin, p.env = nil, append(p.env, ParameterFileVariable+"="+path)
	}
	switch {
	case c.file != "":
		p.args = launch.file(c.file)
		return p, nil
	case launch.inline.Strategy != tempFile:
		p.args = []string{launch.command[0], "-c", c.code}
		return p, nil
	}
	code := []byte(c.code)
	if launch.inline.InjectShellHelpers {
		if code, err = deliver.Script(c.code, params, names); err != nil {
			return program{}, err
		}
		p.stdin = nil
	}
	path, _, err := deliver.ScriptFile(folder, fmt.Sprintf("exec_%d%s", row.ID, launch.extension()), code)
	if err != nil {
		return program{}, err
	}
	p.args = append(slices.Clip(launch.command), path)
	return p, nil
}
