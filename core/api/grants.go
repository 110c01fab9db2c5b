package api

import (
	"encoding/json"
	"reflect"
	"slices"
)

// grant is one entry of permission_set.grants.
type grant struct {
	Resource    string         `json:"resource"`
	Actions     []string       `json:"actions"`
	Constraints map[string]any `json:"constraints"`
}

// grantedAction is an action that needs a grant.
type grantedAction struct {
	id        int64
	ref, pack string
}

// permissions are the permission sets and grants of an identity.
type permissions struct {
	refs   []string
	grants []grant
}

// readGrants reads the grants of a permission set. Unreadable grants permit nothing.
func readGrants(raw []byte) []grant {
	var list []grant
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for i := range list {
		for name, value := range list[i].Constraints {
			if value == nil {
				delete(list[i].Constraints, name)
			}
		}
	}
	return list
}

// execute reports whether a grant permits the execution of the action.
func (p permissions) execute(action grantedAction) bool {
	return slices.ContainsFunc(p.grants, func(g grant) bool {
		return g.Resource == "actions" && slices.Contains(g.Actions, "execute") && g.meets(action)
	})
}

// meets reports whether the action meets every constraint. It does not meet unknown constraints.
func (g grant) meets(action grantedAction) bool {
	for name, value := range g.Constraints {
		var met bool
		switch name {
		case "refs":
			met = holds(value, action.ref)
		case "pack_refs":
			met = holds(value, action.pack)
		case "ids":
			met = holds(value, float64(action.id))
		case "owner", "execution_scope":
			met = value == "any"
		}
		if !met {
			return false
		}
	}
	return true
}

func holds(list, value any) bool {
	values, ok := list.([]any)
	return ok && slices.Contains(values, value)
}

// cover reports whether the grants permit everything that the others permit.
func (p permissions) cover(others []grant) bool {
	for _, other := range others {
		if !slices.ContainsFunc(p.grants, func(own grant) bool { return own.covers(other) }) {
			return false
		}
	}
	return true
}

// covers reports whether a grant permits everything that another one permits: at least the same
// actions on the same resource, with the same constraints or none.
func (g grant) covers(other grant) bool {
	if g.Resource != other.Resource || len(g.Constraints) > 0 && !reflect.DeepEqual(g.Constraints, other.Constraints) {
		return false
	}
	return !slices.ContainsFunc(other.Actions, func(action string) bool { return !slices.Contains(g.Actions, action) })
}
