package devstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"strings"
)

const (
	minPostgres = 15
	minBroker   = "3.10"
)

// MissingError says which program a stack needs and could not find, and what
// to install.
type MissingError struct {
	Program  string   // what was looked for, with its least version
	Package  string   // the command that installs it
	Searched []string // the folders that were looked at
}

// Error names the program, the remedy and the places searched.
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

// findBinaries looks for PostgreSQL and RabbitMQ in the places where packages
// put them. The newest PostgreSQL wins. The broker's own scripts come before
// those on PATH, because Debian's wrappers there change user and folder.
func findBinaries(ctx context.Context) (binaries, error) {
	var b binaries
	if err := b.findPostgres(ctx, postgresDirs()); err != nil {
		return b, err
	}
	if err := b.findBroker(brokerDirs()); err != nil {
		return b, err
	}
	return b, nil
}

func postgresDirs() []string {
	var dirs []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are constant and well formed
		dirs = append(dirs, found...)
	}
	dirs = append(dirs,
		"/opt/homebrew/opt/postgresql/bin", "/usr/local/opt/postgresql/bin", "/usr/local/pgsql/bin")
	return append(dirs, filepath.SplitList(os.Getenv("PATH"))...)
}

func brokerDirs() []string {
	dirs := []string{"/usr/lib/rabbitmq/bin"}
	for _, pattern := range []string{
		"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin",
		"/opt/homebrew/opt/rabbitmq/sbin",
		"/usr/local/opt/rabbitmq/sbin",
		"/opt/rabbitmq*/sbin",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are constant and well formed
		dirs = append(dirs, found...)
	}
	return append(dirs, filepath.SplitList(os.Getenv("PATH"))...)
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
			Searched: shorten(dirs),
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
			Searched: shorten(dirs),
		}
	}
	return b.findEpmd()
}

func (b *binaries) findEpmd() error {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	dirs = append(dirs, "/usr/bin", "/usr/lib/erlang/bin", "/usr/local/bin", "/opt/homebrew/bin")
	for _, pattern := range []string{
		"/usr/lib/erlang/erts-*/bin", "/usr/local/lib/erlang/erts-*/bin",
		"/opt/homebrew/opt/erlang*/lib/erlang/bin", "/opt/homebrew/opt/erlang*/lib/erlang/erts-*/bin",
		"/usr/local/opt/erlang*/lib/erlang/bin", "/usr/local/opt/erlang*/lib/erlang/erts-*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are constant and well formed
		dirs = append(dirs, found...)
	}
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
		Searched: shorten(dirs),
	}
}

// isDebianWrapper recognises the script that Debian puts on PATH: it changes to
// the system's folder and user and refuses everybody else.
func isDebianWrapper(path string) bool {
	target, err := filepath.EvalSymlinks(path)
	return err == nil && (filepath.Base(target) == "rabbitmq-script-wrapper" ||
		strings.HasPrefix(target, "/usr/sbin/"))
}

var versionDigits = regexp.MustCompile(`\d+`)

// postgresVersion asks the binary for its major version; zero means that it
// could not be asked.
func postgresVersion(ctx context.Context, postgres string) int {
	out, err := exec.CommandContext(ctx, postgres, "--version").Output()
	if err != nil {
		return 0
	}
	major, err := strconv.Atoi(versionDigits.FindString(string(out)))
	if err != nil {
		return 0
	}
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

func shorten(dirs []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, dir := range dirs {
		if dir != "" && !seen[dir] {
			seen[dir] = true
			out = append(out, dir)
		}
	}
	sort.Strings(out)
	return out
}
