package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/yamldoc"
)

// Reference is the address of a server, or the variable or file that contains it.
type Reference struct {
	text    string
	at      string // file, line and key
	folder  string // the base of relative paths
	schemes []string
}

// variable matches the reference ${NAME}; the other form is file:PATH.
var variable = regexp.MustCompile(`^\$\{(\w+)\}$`)

const filePrefix = "file:"

// schemes are the allowed schemes of addresses by key.
var schemes = map[string][]string{
	"database_url": {"postgresql", "postgres"}, "broker_url": {"amqp", "amqps"}, "management_url": {"http", "https"},
}

// UnmarshalField reads an address or a reference.
func (r *Reference) UnmarshalField(from *yamldoc.Reader, f yamldoc.Field) bool {
	text, ok := from.Text(f)
	if !ok {
		return false
	}
	at := from.At(f.Value).String() + ": " + f.Name
	*r = Reference{text: text, at: at, folder: filepath.Dir(from.File), schemes: schemes[f.Name]}
	if problem := r.check(); problem != "" {
		from.Mistakef(from.At(f.Value), "%s %s", f.Name, problem)
		return false
	}
	return true
}

// maxSecret bounds the size of a file with an address.
const maxSecret = 64 << 10

// Given reports whether there is an address or a reference.
func (r Reference) Given() bool { return r.text != "" }

// literal reports whether the file contains the address itself.
func (r Reference) literal() bool {
	return r.Given() && r.variable() == "" && !strings.HasPrefix(r.text, filePrefix)
}

// variable is the name of the referenced variable, or empty.
func (r Reference) variable() string {
	if found := variable.FindStringSubmatch(r.text); found != nil {
		return found[1]
	}
	return ""
}

// Show is the reference, or the address without its password.
func (r Reference) Show() string {
	if r.literal() {
		return config.MaskURL(r.text)
	}
	return r.text
}

// Address resolves the reference, and may read a file. Errors name the reference but never contain an address.
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
	if problem := config.AddressProblem(address, r.schemes...); problem != "" {
		return "", fmt.Errorf("%s: what it refers to %s", r.at, problem)
	}
	return address, nil
}

// content reads the referenced file. It must be a regular file: others may never end.
func (r Reference) content() (string, error) {
	path := absolute(strings.TrimPrefix(r.text, filePrefix), r.folder)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no plain file", path)
	case info.Size() > maxSecret:
		return "", fmt.Errorf("%s is larger than %d KiB", path, maxSecret>>10)
	}
	text, err := os.ReadFile(path)
	if address := strings.TrimSpace(string(text)); err != nil || address != "" {
		return address, err
	}
	return "", fmt.Errorf("%s is empty", path)
}

// check says what is wrong with the reference.
func (r Reference) check() string {
	path, isFile := strings.CutPrefix(r.text, filePrefix)
	switch {
	case r.variable() != "":
		return ""
	case strings.Contains(r.text, "${"):
		return "must be one reference such as ${NAME}: it stands for the whole address, not for a part of it"
	case !isFile:
		return config.AddressProblem(r.text, r.schemes...)
	case path == "" || strings.HasPrefix(path, "//"):
		return "must be file: and a path, such as file:secrets/prod"
	default:
		return ""
	}
}

// absolute resolves a path: ~ is the home folder, and relative paths start at the folder of the settings.
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
