package settings

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Spool says whether copies are kept of what is removed from the broker, and how.
type Spool struct {
	// Keep is on or off; empty where it is not said.
	Keep string
	// Key is the file of the key by which copies are sealed; empty where none is named.
	Key string
}

// The values of Spool.Keep.
const (
	spoolOn  = "on"
	spoolOff = "off"
)

// Off reports whether no copies are kept.
func (s Spool) Off() bool { return s.Keep == spoolOff }

// SpoolOf is what holds in a context: what it says itself, and else what the file says
// for all.
func (s *Settings) SpoolOf(c Context) Spool {
	return Spool{Keep: cmp.Or(c.Spool.Keep, s.Spool.Keep), Key: cmp.Or(c.Spool.Key, s.Spool.Key)}
}

// spool adds the keys of a spool to those that may stand in a mapping.
func (r *reader) spool(to *Spool, known fields) fields {
	known["spool"] = func(node *yaml.Node) {
		switch node.Value {
		case spoolOn, "true":
			to.Keep = spoolOn
		case spoolOff, "false":
			to.Keep = spoolOff
		default:
			r.failf(node, "spool must be on or off")
		}
	}
	read := r.text("spool_key", &to.Key)
	known["spool_key"] = func(node *yaml.Node) {
		if read(node); r.err == nil {
			to.Key = absolute(strings.TrimPrefix(to.Key, filePrefix), filepath.Dir(r.path))
		}
	}
	return known
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
