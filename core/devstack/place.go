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

// plainPath is what Erlang's scripts survive: they do not quote.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./@+=:,~-]+$`)

// account is the operating system user PostgreSQL runs as; nil means the
// caller's own.
type account struct {
	name     string
	uid, gid uint32
}

// postgresAccount chooses the user for PostgreSQL: the caller's own, or, as
// root, the package's user or else the unprivileged one.
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
	return nil,
		errors.New("PostgreSQL refuses to run as root and there is neither a user postgres nor nobody to run it as")
}

// place is the folder a stack really uses.
type place struct {
	dir   string
	moved string // why dir is not the folder asked for; empty when it is
}

// findPlace decides where the stack for the asked folder lives. The answer
// depends on the machine only, so that every process finds the same stack.
func findPlace(ctx context.Context, asked string, as *account) (place, error) {
	if !plainPath.MatchString(asked) {
		return fallback(ctx, asked, "its path holds characters that Erlang's scripts do not survive", as)
	}
	if err := makeDir(asked); err != nil {
		return place{}, err
	}
	if !canEnter(ctx, asked, as) {
		return fallback(ctx, asked, "user "+as.name+" cannot enter it", as)
	}
	return place{dir: asked}, nil
}

// elsewhere lists where the stack of a folder may live that it cannot live in.
func elsewhere(asked string) []string {
	sum := sha256.Sum256([]byte(asked))
	name := fmt.Sprintf("attune-stack-%d-%s", os.Geteuid(), hex.EncodeToString(sum[:6]))
	var dirs []string
	for _, base := range []string{os.TempDir(), "/var/tmp", "/tmp"} {
		dirs = append(dirs, filepath.Join(base, name))
	}
	return dirs
}

// nothingAt reports whether no folder is there that could hold the stack.
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
	return place{}, fmt.Errorf("the stack cannot live in %s (%s), nor below the system's temporary folders", asked, why)
}

// makeDir creates dir and what is missing above it, and opens what it created
// to others for passing through: with a umask of 077 the PostgreSQL user could
// not reach its data otherwise.
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
		if errors.Is(err, fs.ErrExist) { // another process made it at the same moment
			return nil
		}
		return fmt.Errorf("create the stack's folder: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("open the stack's folder for passing through: %w", err)
	}
	return nil
}

// owned refuses a folder under our name that another user prepared in a world-writable folder.
func owned(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// canEnter asks the operating system, as the PostgreSQL user, whether it may
// pass through every folder on the way to dir.
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
