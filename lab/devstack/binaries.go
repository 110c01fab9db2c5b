package devstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

const (
	minPostgres = 15
	minBroker   = "3.10"
)

// MissingError reports a missing program and how to install it.
type MissingError struct {
	Program  string   // with its minimum version
	Package  string   // the command that installs it
	Searched []string // the searched folders
}

// Error names the program, the remedy and the searched folders.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s not found: install it with %q (looked in %s)",
		e.Program, e.Package, strings.Join(e.Searched, ", "))
}

// binaries are the paths of the server programs.
type binaries struct {
	initdb, postgres      string
	broker, brokerCtl     string
	epmd                  string
	extraPath             []string // folders the scripts need on PATH
	postgresVersion       int
	postgresBin, rabbitTo string
}

// findBinaries searches PostgreSQL and RabbitMQ in the usual folders of packages. The newest PostgreSQL
// wins. The broker's own scripts come before those on PATH, because Debian's wrappers there change user and
// folder.
func findBinaries(ctx context.Context) (binaries, error) {
	var b binaries
	onPath := filepath.SplitList(os.Getenv("PATH"))
	err := b.findPostgres(ctx, slices.Concat(folders(
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
		"/opt/homebrew/opt/postgresql/bin", "/usr/local/opt/postgresql/bin", "/usr/local/pgsql/bin"), onPath))
	if err != nil {
		return b, err
	}
	err = b.findBroker(slices.Concat(folders(
		"/usr/lib/rabbitmq/bin", "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin",
		"/opt/homebrew/opt/rabbitmq/sbin", "/usr/local/opt/rabbitmq/sbin", "/opt/rabbitmq*/sbin"), onPath))
	return b, err
}

// folders returns the names without a wildcard and the existing folders that match the others.
func folders(patterns ...string) (found []string) {
	for _, pattern := range patterns {
		if !strings.Contains(pattern, "*") {
			found = append(found, pattern)
			continue
		}
		matches, _ := filepath.Glob(pattern) // fails only for a malformed pattern
		found = append(found, matches...)
	}
	return found
}

func (b *binaries) findPostgres(ctx context.Context, dirs []string) error {
	for _, dir := range dirs {
		initdb, postgres := filepath.Join(dir, "initdb"), filepath.Join(dir, "postgres")
		if !executable(postgres) {
			continue
		}
		if target, err := filepath.EvalSymlinks(postgres); err == nil && !executable(initdb) {
			initdb = filepath.Join(filepath.Dir(target), "initdb")
		}
		if !executable(initdb) {
			continue
		}
		version := postgresVersion(ctx, postgres)
		if version < minPostgres || version <= b.postgresVersion {
			continue
		}
		b.initdb, b.postgres, b.postgresVersion, b.postgresBin = initdb, postgres, version, dir
	}
	if b.postgres == "" {
		return &MissingError{
			Program:  fmt.Sprintf("PostgreSQL %d or newer (initdb, postgres)", minPostgres),
			Package:  installHint("postgresql", "postgresql@17"),
			Searched: sorted(dirs),
		}
	}
	return nil
}

func (b *binaries) findBroker(dirs []string) error {
	for _, dir := range dirs {
		server := filepath.Join(dir, "rabbitmq-server")
		if executable(server) && !isDebianWrapper(server) {
			b.broker, b.brokerCtl, b.rabbitTo = server, filepath.Join(dir, "rabbitmqctl"), dir
			break
		}
	}
	if b.broker == "" {
		return &MissingError{
			Program:  "RabbitMQ " + minBroker + " or newer (rabbitmq-server)",
			Package:  installHint("rabbitmq-server", "rabbitmq"),
			Searched: sorted(dirs),
		}
	}
	return b.findEpmd()
}

func (b *binaries) findEpmd() error {
	dirs := slices.Concat(filepath.SplitList(os.Getenv("PATH")), folders(
		"/usr/bin", "/usr/lib/erlang/bin", "/usr/local/bin", "/opt/homebrew/bin",
		"/usr/lib/erlang/erts-*/bin", "/usr/local/lib/erlang/erts-*/bin",
		"/opt/homebrew/opt/erlang*/lib/erlang/bin", "/opt/homebrew/opt/erlang*/lib/erlang/erts-*/bin",
		"/usr/local/opt/erlang*/lib/erlang/bin", "/usr/local/opt/erlang*/lib/erlang/erts-*/bin"))
	for _, dir := range dirs {
		if epmd := filepath.Join(dir, "epmd"); executable(epmd) {
			b.epmd = epmd
			b.extraPath = []string{dir, b.rabbitTo}
			return nil
		}
	}
	return &MissingError{
		Program:  "Erlang's port mapper (epmd)",
		Package:  installHint("erlang-base", "erlang"),
		Searched: sorted(dirs),
	}
}

// isDebianWrapper recognises Debian's script on PATH, which changes to the system's folder and user and
// refuses every other user.
func isDebianWrapper(path string) bool {
	target, err := filepath.EvalSymlinks(path)
	return err == nil && (filepath.Base(target) == "rabbitmq-script-wrapper" ||
		strings.HasPrefix(target, "/usr/sbin/"))
}

var versionDigits = regexp.MustCompile(`\d+`)

// postgresVersion returns the major version of the binary, zero if unknown.
func postgresVersion(ctx context.Context, postgres string) int {
	out, _ := exec.CommandContext(ctx, postgres, "--version").Output() // no output is no version
	major, _ := strconv.Atoi(versionDigits.FindString(string(out)))
	return major
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

func installHint(debian, brew string) string {
	if runtime.GOOS == "darwin" {
		return "brew install " + brew
	}
	return "apt-get install " + debian
}

func sorted(dirs []string) []string {
	dirs = slices.Compact(slices.Sorted(slices.Values(dirs)))
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" })
}
