package settings

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attune-go/attune/core/config"
)

// Reference is the address of a server as the file has it: written out, or the
// variable or the file that holds it.
type Reference struct {
	text    string
	at      string // the file, the line and the key
	folder  string // paths are relative to the folder of the settings
	schemes []string
}

// The forms of a reference.
const (
	variableOpen  = "${"
	variableClose = "}"
	filePrefix    = "file:"
)

// maxSecret bounds what is read of a file that holds an address.
const maxSecret = 64 << 10

// Given reports whether there is an address at all.
func (r Reference) Given() bool { return r.text != "" }

// literal reports whether the address itself stands in the file.
func (r Reference) literal() bool {
	return r.Given() && r.variable() == "" && !strings.HasPrefix(r.text, filePrefix)
}

// variable is the name of the variable that a reference names.
func (r Reference) variable() string {
	name, ok := strings.CutPrefix(r.text, variableOpen)
	if !ok {
		return ""
	}
	return strings.TrimSuffix(name, variableClose)
}

// Show is the reference for people: what it refers to, or the address without
// its password.
func (r Reference) Show() string {
	if r.literal() {
		return config.MaskURL(r.text)
	}
	return r.text
}

// Address follows the reference. It reads a file where it names one. The error
// says where the reference stands and never repeats an address.
func (r Reference) Address(environ []string) (address string, err error) {
	switch name := r.variable(); {
	case !r.Given():
		return "", nil
	case name != "":
		address = lookup(environ, name)
		if address == "" {
			return "", fmt.Errorf("%s: the environment variable %s is not set", r.at, name)
		}
	case r.literal():
		address = r.text
	default:
		if address, err = r.content(); err != nil {
			return "", fmt.Errorf("%s: %w", r.at, err)
		}
	}
	if problem := r.problem(address); problem != "" {
		return "", fmt.Errorf("%s: what it refers to %s", r.at, problem)
	}
	return address, nil
}

// content reads the file that the reference names. Nothing but a plain file is
// opened: others may never end.
func (r Reference) content() (string, error) {
	path := r.path()
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no plain file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // It was only read.
	text, err := io.ReadAll(io.LimitReader(file, maxSecret))
	if err != nil {
		return "", err
	}
	address := strings.TrimSpace(string(text))
	if address == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return address, nil
}

func (r Reference) path() string {
	return absolute(strings.TrimPrefix(r.text, filePrefix), r.folder)
}

// problem says what is wrong with an address, without repeating it.
func (r Reference) problem(address string) string {
	if r.schemes[0] == "postgresql" && !strings.Contains(address, "://") && strings.Contains(address, "=") {
		return "" // the keyword form: host=… dbname=…
	}
	parsed, err := url.Parse(address)
	if err != nil || !slices.Contains(r.schemes, parsed.Scheme) {
		return fmt.Sprintf("must be a URL like %s://user:password@host:port", r.schemes[0])
	}
	if parsed.Host == "" && parsed.RawQuery == "" {
		return "is a URL that names no host"
	}
	return ""
}

// check says what is wrong with the reference as it stands in the file.
func (r Reference) check() string {
	switch {
	case !strings.Contains(r.text, variableOpen):
		if path, ok := strings.CutPrefix(r.text, filePrefix); ok {
			if path == "" || strings.HasPrefix(path, "//") {
				return "must be file: and a path, such as file:secrets/prod"
			}
			return ""
		}
		return r.problem(r.text)
	case !isVariable(r.text):
		return "must be one reference such as ${NAME}: it stands for the whole address, not for a part of it"
	default:
		return ""
	}
}

// isVariable reports whether the text is one variable and nothing else.
func isVariable(text string) bool {
	name, opened := strings.CutPrefix(text, variableOpen)
	name, closed := strings.CutSuffix(name, variableClose)
	if !opened || !closed || name == "" {
		return false
	}
	return strings.IndexFunc(name, func(c rune) bool {
		return c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	}) < 0
}

// absolute is a path of the file: from the home folder if it begins with ~, else from
// the folder of the settings.
func absolute(path, folder string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	return path
}
