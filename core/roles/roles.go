package roles

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Role is a kind of login.
type Role string

// The roles.
const (
	Engine   Role = "engine"   // attune-executor serve
	Worker   Role = "worker"   // attune-executor worker
	Operator Role = "operator" // the dashboard and the commands that act
	Viewer   Role = "viewer"   // the dashboard and the commands that read
)

// All lists the roles.
var All = []Role{Engine, Worker, Operator, Viewer}

// Parse returns the role of a name.
func Parse(name string) (Role, error) {
	if role := Role(name); slices.Contains(All, role) {
		return role, nil
	}
	return "", fmt.Errorf("role %q is unknown: use engine, worker, operator or viewer", name)
}

// grant is one privilege on one object for some roles. Without columns it is for the whole object.
type grant struct {
	privilege string
	columns   []string
	function  bool
	object    string
	roles     []Role
}

//go:embed grants.sql
var declared string

var (
	comment   = regexp.MustCompile(`(?m)^--.*$`)
	statement = regexp.MustCompile(`^GRANT (.+) ON (FUNCTION )?(\w+) TO ([\w, ]+)$`)
	privilege = regexp.MustCompile(`^([A-Z]+)(?: \(([\w, ]+)\))?(?:, |$)`)
)

// parse reads the declaration.
func parse(text string) ([]grant, error) {
	var grants []grant
	for one := range strings.SplitSeq(comment.ReplaceAllString(text, ""), ";") {
		one = strings.Join(strings.Fields(one), " ")
		if one == "" {
			continue
		}
		parts := statement.FindStringSubmatch(one)
		if parts == nil {
			return nil, fmt.Errorf("%q is no grant", one)
		}
		var to []Role
		for name := range strings.SplitSeq(parts[4], ", ") {
			role, err := Parse(name)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", one, err)
			}
			to = append(to, role)
		}
		for rest := parts[1]; rest != ""; {
			found := privilege.FindStringSubmatch(rest)
			if found == nil {
				return nil, fmt.Errorf("%q: %q is no privilege", one, rest)
			}
			g := grant{privilege: found[1], function: parts[2] != "", object: parts[3], roles: to}
			if found[2] != "" {
				g.columns = strings.Split(found[2], ", ")
			}
			grants, rest = append(grants, g), rest[len(found[0]):]
		}
	}
	return grants, nil
}

// of returns the declared privileges of a role.
func of(role Role) ([]grant, error) {
	grants, err := parse(declared)
	if err != nil {
		return nil, fmt.Errorf("read the declared privileges: %w", err)
	}
	return slices.DeleteFunc(grants, func(g grant) bool { return !slices.Contains(g.roles, role) }), nil
}
