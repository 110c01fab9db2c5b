package devstack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
)

// plainPath matches the paths that Erlang's scripts, which do not quote, can use.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./@+=:,~-]+$`)

// account is the operating system user of PostgreSQL; nil means the caller.
type account struct {
	name     string
	uid, gid uint32
}

// postgresAccount returns the user of PostgreSQL: the caller, or for root the package's user or else the
// unprivileged one.
func postgresAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "_postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(found.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(found.Gid, 10, 32)
		if errUID == nil && errGID == nil {
			return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as")
}

// place is the folder that a stack really uses.
type place struct {
	dir   string
	moved string // why dir is not the configured folder; empty when it is
}

// findPlace returns the folder of the stack for the asked folder. The result depends on the machine only, so
// that every process finds the same stack.
func findPlace(ctx context.Context, asked string, as *account) (place, error) {
	if !plainPath.MatchString(asked) {
		return fallback(ctx, asked, "its path has characters that Erlang's scripts do not support", as)
	}
	if err := makeDir(asked); err != nil {
		return place{}, err
	}
	if !canEnter(ctx, asked, as) {
		return fallback(ctx, asked, "user "+as.name+" cannot enter it", as)
	}
	return place{dir: asked}, nil
}

// elsewhere returns the alternative folders of a stack.
func elsewhere(asked string) []string {
	sum := sha256.Sum256([]byte(asked))
	name := fmt.Sprintf("attune-stack-%d-%s", os.Geteuid(), hex.EncodeToString(sum[:6]))
	var dirs []string
	for _, base := range []string{os.TempDir(), "/var/tmp", "/tmp"} {
		dirs = append(dirs, filepath.Join(base, name))
	}
	return dirs
}

// nothingAt reports whether none of the stack's possible folders exists.
func nothingAt(asked string) bool {
	asked, err := filepath.Abs(asked)
	if err != nil {
		return false
	}
	for _, dir := range append(elsewhere(asked), asked) {
		if _, err := os.Lstat(dir); err == nil {
			return false
		}
	}
	return true
}

func fallback(ctx context.Context, asked, why string, as *account) (place, error) {
	for _, dir := range elsewhere(asked) {
		if !plainPath.MatchString(dir) {
			continue
		}
		if err := makeDir(dir); err != nil || !owned(dir) || !canEnter(ctx, dir, as) {
			continue
		}
		return place{dir: dir, moved: why}, nil
	}
	return place{}, fmt.Errorf("the stack can use neither %s (%s) nor the system's temporary folders", asked, why)
}

// makeDir creates dir and its missing parents so that other users can pass through: with a umask of 077 the
// PostgreSQL user could not reach its data otherwise.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("the stack's folder %s is a file", dir)
		}
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) { // another process created it at the same time
			return nil
		}
		return fmt.Errorf("create the stack's folder: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("open the stack's folder for other users: %w", err)
	}
	return nil
}

// owned reports whether the caller owns dir: another user may have prepared it in a world-writable folder.
func owned(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// canEnter reports whether the PostgreSQL user may enter dir and all its parents.
func canEnter(ctx context.Context, dir string, as *account) bool {
	if as == nil {
		return true
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `test -x "$0"`, dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential()}
	return cmd.Run() == nil
}

func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}
