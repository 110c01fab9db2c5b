package placement

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// Spec is an action's requirements for workers, as stored in its row.
type Spec struct {
	// Runtimes are the name and the aliases of the action's runtime. Empty means that it needs
	// none.
	Runtimes []string
	// Version is the constraint on that runtime's version.
	Version string
	// Required, Selector, Tolerations and Affinity are JSON; nil and null count as empty.
	Required, Selector, Tolerations, Affinity []byte
}

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

type rules struct {
	id          string // equal for equal rules
	kind        string
	runtimes    []string // any of them; empty if the action needs none
	version     Constraint
	required    []runtimeNeed
	selector    []label
	tolerations []toleration
	affinity    affinity
	// Errors of fields that an execution may override are kept until Override.
	broken, brokenSelector, brokenTolerations, brokenAffinity error
}

// NewNeed reads the requirements of an action. Err and Override report invalid fields.
func NewNeed(spec Spec) Need {
	r := &rules{runtimes: NormalizeRuntimes(spec.Runtimes)}
	var err error
	if r.version, err = ParseConstraint(spec.Version); err != nil {
		r.broken = fieldError("action.runtime_version_constraint", err)
	}
	if r.required, err = parseRequired(spec.Required); err != nil && r.broken == nil {
		r.broken = fieldError("action.required_worker_runtimes", err)
	}
	r.setSelector("action", spec.Selector)
	r.setTolerations("action", spec.Tolerations)
	r.setAffinity("action", spec.Affinity)
	r.name(spec)
	if r.id == "" {
		return Need{}
	}
	return Need{rules: r}
}

func (r *rules) setSelector(whose string, raw []byte) {
	var given map[string]string
	r.selector = nil
	err := decode(raw, &given, "an object of labels with strings as values")
	if err == nil {
		r.selector, err = labels(given)
	}
	r.brokenSelector = fieldError(whose+".worker_selector", err)
}

func (r *rules) setTolerations(whose string, raw []byte) {
	var err error
	r.tolerations, err = parseTolerations(raw)
	r.brokenTolerations = fieldError(whose+".worker_tolerations", err)
}

func (r *rules) setAffinity(whose string, raw []byte) {
	var err error
	r.affinity, err = parseAffinity(raw)
	r.brokenAffinity = fieldError(whose+".worker_affinity", err)
}

// name sets the id of the rules, empty if they require nothing, and their kind.
func (r *rules) name(spec Spec) {
	texts := []string{strings.Join(r.runtimes, " "), strings.TrimSpace(spec.Version)}
	for _, raw := range [][]byte{spec.Required, spec.Selector, spec.Tolerations, spec.Affinity} {
		texts = append(texts, textOf(raw))
	}
	for i := range texts {
		if texts[i] != "" {
			r.id = strings.Join(texts, "\x00")
		}
	}
	r.kind = strings.Join(strings.Fields(strings.Join(texts, " ")), " ")
	if len(r.kind) > maxKind {
		r.kind = r.kind[:maxKind-20] + strconv.FormatUint(digest(r.kind), 36)
	}
	r.kind = strings.ToValidUTF8(r.kind, "")
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
	r := n.rules
	for _, err := range []error{r.broken, r.brokenSelector, r.brokenTolerations, r.brokenAffinity} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Override is the need of an execution whose row overrides its action: each of the three replaces
// the action's unless it is nil or null; an empty one clears it. The error names the invalid field.
func (n Need) Override(selector, tolerations, affinity []byte) (Need, error) {
	if isUnset(selector) && isUnset(tolerations) && isUnset(affinity) {
		return n, n.Err()
	}
	r := rules{}
	if n.rules != nil {
		r = *n.rules
	}
	var id strings.Builder
	id.WriteString(r.id)
	for i, raw := range [][]byte{selector, tolerations, affinity} {
		id.WriteString("\x01")
		if isUnset(raw) {
			continue
		}
		id.Write(raw)
		switch i {
		case 0:
			r.setSelector("execution", raw)
		case 1:
			r.setTolerations("execution", raw)
		case 2:
			r.setAffinity("execution", raw)
		}
	}
	r.id = id.String()
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
