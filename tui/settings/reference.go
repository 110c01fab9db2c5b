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

// Reference is the address of a server as the file has it: written out, or the
// variable or the file that holds it.
type Reference struct {
	text    string
	at      string // the file, the line and the key
	folder  string // paths are relative to the folder of the settings
	schemes []string
}

// The forms of a reference: ${NAME} and file:PATH.
var variable = regexp.MustCompile(`^\$\{(\w+)\}$`)

const filePrefix = "file:"

// schemes are those that addresses may have, by the key.
var schemes = map[string][]string{
	"database_url": {"postgresql", "postgres"}, "broker_url": {"amqp", "amqps"}, "management_url": {"http", "https"},
}

// UnmarshalField reads the address of a server, or what refers to it.
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

// maxSecret bounds what is read of a file that holds an address.
const maxSecret = 64 << 10

// Given reports whether there is an address at all.
func (r Reference) Given() bool { return r.text != "" }

// literal reports whether the address itself stands in the file.
func (r Reference) literal() bool {
	return r.Given() && r.variable() == "" && !strings.HasPrefix(r.text, filePrefix)
}

// variable is the name of the variable that a reference names; empty for none.
func (r Reference) variable() string {
	if found := variable.FindStringSubmatch(r.text); found != nil {
		return found[1]
	}
	return ""
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
	if problem := config.AddressProblem(address, r.schemes...); problem != "" {
		return "", fmt.Errorf("%s: what it refers to %s", r.at, problem)
	}
	return address, nil
}

// content reads the file that the reference names. Nothing but a plain file is
// opened: others may never end.
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

// check says what is wrong with the reference as it stands in the file.
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
