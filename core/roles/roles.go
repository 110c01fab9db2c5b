package roles

import (
	"fmt"
	"slices"
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
