package placement

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// Need is an execution's requirements for its worker. The zero value requires nothing. A need may
// be copied and its exported fields set.
type Need struct {
	rules *rules // never changed once it is made
	// Avoid are workers that are avoided, with their hosts, while any other fits.
	Avoid []int64
	// Fence admits only workers that refuse dispatches of older attempts.
	Fence bool
	// Except is a worker that must not be chosen; 0 for none.
	Except int64
}

// rules are those of the fields, in their order. The errors of fields that an execution may replace are kept until
// Override.
type rules struct {
	id     string // equal for equal rules
	kind   string
	list   [len(fields)]rule
	broken [len(fields)]error
}

// NewNeed reads the requirements of an action. Err and Override report invalid fields.
func NewNeed(spec Spec) Need {
	spec.Runtimes = NormalizeRuntimes(spec.Runtimes)
	r := &rules{}
	texts := []string{strings.Join(spec.Runtimes, " ")}
	for i, f := range fields {
		r.set(i, "action", &spec)
		texts = append(texts, textOf(*f.of(&spec)))
	}
	r.kind = strings.Join(strings.Fields(strings.Join(texts, " ")), " ")
	if r.kind == "" {
		return Need{}
	}
	r.id = strings.Join(texts, "\x00")
	if len(r.kind) > maxKind {
		r.kind = r.kind[:maxKind-20] + strconv.FormatUint(digest(r.kind), 36)
	}
	r.kind = strings.ToValidUTF8(r.kind, "")
	return Need{rules: r}
}

// set makes the rule of one field.
func (r *rules) set(i int, whose string, spec *Spec) {
	r.list[i], r.broken[i] = fields[i].rule(spec)
	if err := r.broken[i]; err != nil {
		r.broken[i] = fmt.Errorf("%s.%s: %w", whose, fields[i].Column, err)
	}
}

// maxKind bounds the text of a kind.
const maxKind = 500

// textOf is a JSON document, or empty for an empty one.
func textOf(raw []byte) string {
	switch text := strings.TrimSpace(string(raw)); text {
	case "null", "{}", "[]":
		return ""
	default:
		return text
	}
}

func digest(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // cannot fail
	return h.Sum64()
}

// Err reports the invalid field.
func (n Need) Err() error {
	if n.rules == nil {
		return nil
	}
	return cmp.Or(n.rules.broken[:]...)
}

// Override is the need of an execution with fields of its own. The error names the invalid field.
func (n Need) Override(own Own) (Need, error) {
	spec, replaced, r := Spec{Own: own}, "", rules{}
	if n.rules != nil {
		r = *n.rules
	}
	for i, f := range fields {
		if f.own && !isUnset(*f.of(&spec)) {
			replaced += "\x01" + f.Name + string(*f.of(&spec))
			r.set(i, "execution", &spec)
		}
	}
	if replaced == "" {
		return n, n.Err()
	}
	r.id += replaced
	n.rules = &r
	return n, n.Err()
}

func isUnset(raw []byte) bool {
	return len(raw) == 0 || string(raw) == "null"
}

// ownKinds is the number of kinds for executions that override their action.
const ownKinds = 8

// Kind names the required workers, so that the executions that have waited longest for each kind
// can be tried. The number of kinds is small: an execution that overrides its action, or avoids
// workers, gets one of eight.
func (n Need) Kind() string {
	kind, own := "", ""
	if n.rules != nil {
		kind = n.rules.kind
		_, own, _ = strings.Cut(n.rules.id, "\x01")
	}
	for _, id := range n.Avoid {
		own += " " + strconv.FormatInt(id, 10)
	}
	if own == "" {
		return kind
	}
	return kind + "/" + strconv.FormatUint(digest(own)%ownKinds, 10)
}

func (n Need) key() string {
	if n.rules == nil {
		return ""
	}
	return n.rules.id
}
