package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"

	"github.com/attune-go/attune/core/worker/process"
)

// separation isolates the processes of actions from the worker: their user, their limits, and a
// folder for temporary files of each execution.
type separation struct {
	user   *process.User // nil is the worker's own
	limits process.Limits
	temp   string
}

func (c Config) separation() (separation, error) {
	s := separation{limits: c.Limits, temp: c.TempDir}
	if c.RunAs == "" {
		return s, nil
	}
	user, err := process.LookUpUser(c.RunAs)
	if err != nil {
		return s, fmt.Errorf("worker %s: run actions as %s: %w", c.Name, c.RunAs, err)
	}
	if user.UID == 0 {
		return s, fmt.Errorf(
			"worker %s: run actions as %s: an action that is root can do whatever the worker can",
			c.Name, c.RunAs)
	}
	s.user = &user
	return s, nil
}

// probeScript does what actions do: it writes a temporary file, and opens its input by name where the system has names.
const probeScript = `: > "$TMPDIR/probe" && { test ! -e /dev/stdin || : < /dev/stdin; }`

// check tries what each action needs, so that a worker without the rights for it does not start. It
// logs once how far actions are isolated.
func (s separation) check(ctx context.Context, logger *slog.Logger) error {
	if os.Getpid() == 1 {
		logger.WarnContext(ctx, "Processes that actions leave behind stay as zombies, because the worker is PID 1: "+
			"start it with an init, such as tini")
	}
	if s.user == nil {
		const unprotected = "Actions run as the worker's own user and can read its files"
		if os.Geteuid() == 0 {
			logger.WarnContext(ctx, unprotected+", and its memory because that is root: set worker.run_as")
		} else {
			logger.InfoContext(ctx, unprotected+": set worker.run_as")
		}
	}
	if s.user == nil && s.limits == (process.Limits{}) {
		return nil
	}
	folder, remove, err := s.folder()
	if err != nil {
		return err
	}
	defer remove()
	if err := s.own(folder); err != nil {
		return err
	}
	probe := process.Command{
		Args: []string{"/bin/sh", "-c", probeScript}, Dir: folder, Env: s.environment(folder),
		Limits: s.limits, User: s.user,
	}
	if err := probe.Check(); err != nil {
		return fmt.Errorf("start actions with worker.run_as and limits: %w", err)
	}
	if s.user != nil {
		logger.InfoContext(ctx, "Actions run as another user", "user", s.user.Name, "uid", s.user.UID, "gid",
			s.user.GID)
	}
	return nil
}

// folder creates the folder of one execution, which only the worker can enter until own. remove
// deletes it with its content.
func (s separation) folder() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(s.temp, "attune-execution-*") // created with mode 0700
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", errNoFolder, err)
	}
	return dir, func() { s.removeAll(dir) }, nil
}

// removeAll removes a folder whose actions may still change it. Another user's read-only folders need no change of
// modes, which would be a way to change files outside. The worker's own user gains nothing outside, and os.Root keeps
// to the folder.
func (s separation) removeAll(dir string) {
	if os.RemoveAll(dir) == nil || s.user != nil {
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	_ = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = root.Chmod(path, 0o700) //nolint:gosec // a folder, which is about to be removed
		}
		return nil
	})
	_ = root.Close() // it was only read
	_ = os.RemoveAll(dir)
}

// own gives a folder and its files to the user of actions: the folder last, so that no other action
// can change the files before.
func (s separation) own(dir string) (err error) {
	if s.user == nil {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("give temporary files to user %s: %w", s.user.Name, err)
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only read
	var paths []string
	err = fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	for _, path := range slices.Backward(paths) {
		err = errors.Join(err, root.Lchown(path, int(s.user.UID), int(s.user.GID)))
	}
	return err
}

// environment returns the variables for the user and the folder of a process.
func (s separation) environment(folder string) []string {
	env := []string{"TMPDIR=" + folder}
	if s.user != nil {
		env = append(env, "HOME="+s.user.Home, "USER="+s.user.Name, "LOGNAME="+s.user.Name)
	}
	return env
}
