package keymap

import (
	"fmt"
	"slices"
	"strings"
)

// Map is the keys as they work for one operator: the table of the program, or
// what the operator has made of it.
type Map struct {
	table, dialogs []Binding
}

// BuiltIn is the table of the program. Nothing changes it.
var BuiltIn = &Map{table: Table, dialogs: Dialogs}

// Change gives an action other keys. The keys it had are free then.
type Change struct {
	Action Action
	Keys   []string
}

// New makes a map with other keys for some actions, under the rules that the program's own table is
// held to: one key has one meaning
// everywhere, no key hides one that is typed as two, and keys that act are
// neither those that confirm nor on a control key. The dialogs keep their keys.
func New(changes []Change) (*Map, error) {
	m := &Map{table: slices.Clone(Table), dialogs: Dialogs}
	for _, c := range changes {
		if slices.Contains(fixed, c.Action) {
			return nil, problem(string(c.Action)+" keeps its keys, so that there is always a way out", c.Action)
		}
		known := false
		for i := range m.table {
			if b := &m.table[i]; b.Action == c.Action { // some have one row for each of their words
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

// ProblemError is what breaks the rules of a key map, and the actions it is about.
type ProblemError struct {
	Actions []Action
	text    string
}

// Error says what is wrong in a line.
func (p *ProblemError) Error() string { return p.text }

func problem(text string, actions ...Action) error {
	return &ProblemError{Actions: actions, text: text}
}

// fixed are the actions that keep their keys.
var fixed = []Action{Abort, Back}

// Check says what breaks the rules of a table; nil when nothing does.
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

// unfit says why a binding cannot be on a key; nothing when it can.
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

// Lookup returns the action of a key in a scope. A prefix of a longer key, such
// as the first g of gg, returns None and true.
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

// isSequence reports whether a key is typed as several letters, as gg is.
func isSequence(key string) bool {
	return len(key) == 2 && key[0] == key[1]
}

// For lists the bindings that work in a scope, in the order of the table. While a
// dialog is open nothing but its own keys work.
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

// maxBottom is the most keys the bottom line names.
const maxBottom = 9

// BottomLine lists the bindings for the line of keys, the most useful first and the
// one that leads to all others last. Those that act are left out where acting is not
// allowed.
func (m *Map) BottomLine(scope Scope, acting bool) []Binding {
	var out []Binding
	for _, b := range m.For(scope) {
		if b.Short != "" && (acting || !b.Acts) {
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, func(a, b Binding) int { return a.Rank - b.Rank })
	if len(out) <= maxBottom {
		return out
	}
	return append(out[:maxBottom-1:maxBottom-1], out[len(out)-1])
}
