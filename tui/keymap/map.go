package keymap

import (
	"fmt"
	"slices"
	"strings"
)

// Map is a key map: the built-in one, or one with the operator's changes.
type Map struct {
	table, dialogs []Binding
}

// BuiltIn is the built-in key map.
var BuiltIn = &Map{table: Table, dialogs: Dialogs}

// Change gives an action other keys and frees its former ones.
type Change struct {
	Action Action
	Keys   []string
}

// New applies changes to the built-in key map and checks the rules: a key has one meaning in a scope, no key hides a
// two-letter key, and keys of acts are neither confirming keys nor control keys. Dialogs keep their keys.
func New(changes []Change) (*Map, error) {
	m := &Map{table: slices.Clone(Table), dialogs: Dialogs}
	for _, c := range changes {
		if slices.Contains(fixed, c.Action) {
			return nil, problem(string(c.Action)+" keeps its keys, so that there is always a way out", c.Action)
		}
		known := false
		for i := range m.table {
			if b := &m.table[i]; b.Action == c.Action { // an action may have several rows
				b.Keys, b.Show, known = c.Keys, Show(c.Keys), true
			}
		}
		if !known {
			return nil, problem(string(c.Action)+" is not an action", c.Action)
		}
	}
	if err := Check(m.table); err != nil {
		return nil, err
	}
	return m, nil
}

// ProblemError is a broken rule with its actions.
type ProblemError struct {
	Actions []Action
	text    string
}

// Error is one line.
func (p *ProblemError) Error() string { return p.text }

func problem(text string, actions ...Action) error {
	return &ProblemError{Actions: actions, text: text}
}

// fixed are the actions whose keys cannot change.
var fixed = []Action{Abort, Back}

// Check returns the first broken rule of a table.
func Check(table []Binding) error {
	meaning := map[string]Action{}
	for _, b := range table {
		for _, key := range b.Keys {
			if other, taken := meaning[key]; taken && other != b.Action {
				return problem(fmt.Sprintf("the key %s would mean both %s and %s", spell(key), other, b.Action),
					b.Action, other)
			}
			meaning[key] = b.Action
			if why := unfit(b, key); why != "" {
				return problem(fmt.Sprintf("%s cannot be on %s: %s", b.Action, spell(key), why), b.Action)
			}
		}
	}
	for key, action := range meaning {
		if !isSequence(key) {
			continue
		}
		if other, taken := meaning[key[:1]]; taken {
			return problem(fmt.Sprintf("the key %s of %s hides %s of %s", key[:1], other, key, action), other, action)
		}
	}
	return nil
}

// unfit says why a key cannot be bound; empty if it can.
func unfit(b Binding, key string) string {
	if !b.Acts {
		return ""
	}
	if _, confirms := meaningIn(InConfirm, key); confirms {
		return "what acts is never on a key of the question that follows"
	}
	if strings.HasPrefix(key, "ctrl+") {
		return "what acts is never on a control key"
	}
	return ""
}

func meaningIn(scope Scope, key string) (Action, bool) {
	for _, b := range BuiltIn.For(scope) {
		if slices.Contains(b.Keys, key) {
			return b.Action, true
		}
	}
	return None, false
}

// Lookup returns the action of a key in a scope. The first letter of a two-letter key returns None and true.
func (m *Map) Lookup(scope Scope, key string) (action Action, prefix bool) {
	for _, b := range m.For(scope) {
		for _, k := range b.Keys {
			if k == key {
				return b.Action, false
			}
			if isSequence(k) && strings.HasPrefix(k, key) {
				prefix = true
			}
		}
	}
	return None, prefix
}

// isSequence reports whether a key consists of several letters.
func isSequence(key string) bool {
	return len(key) == 2 && key[0] == key[1]
}

// For lists the bindings of a scope in the order of the table. In a dialog only its own keys work.
func (m *Map) For(scope Scope) []Binding {
	table := m.table
	if slices.Contains(DialogScopes, scope) {
		table = m.dialogs
	}
	var out []Binding
	for _, b := range table {
		if b.In(scope) {
			out = append(out, b)
		}
	}
	return out
}

// All lists every binding, those of dialogs last.
func (m *Map) All() []Binding { return slices.Concat(m.table, m.dialogs) }

// Of returns the binding of an action outside dialogs.
func (m *Map) Of(action Action) (Binding, bool) {
	for _, b := range m.table {
		if b.Action == action {
			return b, true
		}
	}
	return Binding{}, false
}

// maxBottom is the largest number of keys in the line of keys.
const maxBottom = 9

// BottomLine lists the bindings of the line of keys by rank, help last: the useful ones, or all for nil.
func (m *Map) BottomLine(scope Scope, useful func(Binding) bool) []Binding {
	var out []Binding
	for _, b := range m.For(scope) {
		if b.Short != "" && (useful == nil || useful(b)) {
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, func(a, b Binding) int { return a.Rank - b.Rank })
	if len(out) <= maxBottom {
		return out
	}
	return append(out[:maxBottom-1:maxBottom-1], out[len(out)-1])
}

// Where lists the scopes of a binding.
func (b Binding) Where() string {
	if slices.Contains(b.Scopes, Everywhere) {
		return "everywhere"
	}
	names := make([]string, len(b.Scopes))
	for i, s := range b.Scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
