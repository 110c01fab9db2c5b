package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
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

// check tries what each action needs, so that a worker without the rights for it does not start. It
// logs once how far actions are isolated.
func (s separation) check(ctx context.Context, logger *slog.Logger) error {
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
		Args: []string{"/bin/sh", "-c", `: > "$TMPDIR/probe"`}, Dir: folder, Env: s.environment(folder),
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
	return dir, func() { removeAll(dir) }, nil
}

// removeAll also removes read-only folders.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a folder, which is about to be removed
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// own gives a folder and its files to the user of actions: the folder last, so that no other action
// can change the files before.
func (s separation) own(dir string) error {
	if s.user == nil {
		return nil
	}
	var paths []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	for _, path := range slices.Backward(paths) {
		err = errors.Join(err, os.Lchown(path, int(s.user.UID), int(s.user.GID)))
	}
	if err != nil {
		return fmt.Errorf("give temporary files to user %s: %w", s.user.Name, err)
	}
	return nil
}

// environment returns the variables for the user and the folder of a process.
func (s separation) environment(folder string) []string {
	env := []string{"TMPDIR=" + folder}
	if s.user != nil {
		env = append(env, "HOME="+s.user.Home, "USER="+s.user.Name, "LOGNAME="+s.user.Name)
	}
	return env
}
