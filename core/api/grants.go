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

// grantedAction is the action that a grant is asked about.
type grantedAction struct {
	id        int64
	ref, pack string
}

// permissions is what an identity holds.
type permissions struct {
	refs   []string
	grants []grant
}

// readGrants reads the grants of a permission set. What cannot be read grants nothing.
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

// execute reports whether a grant permits to execute the action.
func (p permissions) execute(action grantedAction) bool {
	return slices.ContainsFunc(p.grants, func(g grant) bool {
		return g.Resource == "actions" && slices.Contains(g.Actions, "execute") && g.meets(action)
	})
}

// meets reports whether the action meets every constraint. One that says nothing about
// actions is not met.
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

// cover reports whether the own grants permit all that the others do.
func (p permissions) cover(others []grant) bool {
	for _, other := range others {
		if !slices.ContainsFunc(p.grants, func(own grant) bool { return own.covers(other) }) {
			return false
		}
	}
	return true
}

// covers reports whether one grant permits all that another does: on the same resource
// at least its actions, under no constraint or the same ones.
func (g grant) covers(other grant) bool {
	if g.Resource != other.Resource || len(g.Constraints) > 0 && !reflect.DeepEqual(g.Constraints, other.Constraints) {
		return false
	}
	return !slices.ContainsFunc(other.Actions, func(action string) bool { return !slices.Contains(g.Actions, action) })
}
