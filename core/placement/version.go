package placement

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Version is a runtime version of three numbers, with the suffix of a pre-release.
type Version struct {
	Major, Minor, Patch uint64
	Pre                 string
}

// ParseVersion parses a version. It accepts a leading v, missing parts and a suffix after the third
// part.
func ParseVersion(text string) (Version, error) {
	v, _, err := parseVersion(text)
	return v, err
}

// parseVersion also returns the number of parts.
func parseVersion(text string) (Version, int, error) {
	rest := strings.TrimSpace(text)
	if rest != "" && (rest[0] == 'v' || rest[0] == 'V') {
		rest = rest[1:]
	}
	rest, _, _ = strings.Cut(rest, "+") // build metadata
	rest, pre, _ := strings.Cut(rest, "-")
	parts := strings.Split(rest, ".")
	count := min(len(parts), 3)
	var numbers [3]uint64
	for i, part := range parts[:count] {
		digits := part
		if end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			// 3.13.0rc1: some programs omit the dash. The rest belongs to the suffix.
			if digits = part[:end]; isLetter(part[end]) && pre == "" {
				pre = part[end:]
			}
			count = i + 1
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return Version{}, 0, fmt.Errorf("%q is not a version", text)
		}
		numbers[i] = n
		if count == i+1 {
			break
		}
	}
	return Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2], Pre: pre}, count, nil
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// String writes the version in three parts.
func (v Version) String() string {
	text := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	if v.Pre != "" {
		text += "-" + v.Pre
	}
	return text
}

// Compare orders versions; a pre-release precedes its release.
func (v Version) Compare(other Version) int {
	if c := v.triple(other); c != 0 {
		return c
	}
	switch {
	case v.Pre == other.Pre:
		return 0
	case v.Pre == "":
		return 1
	case other.Pre == "":
		return -1
	default:
		return comparePre(v.Pre, other.Pre)
	}
}

func (v Version) triple(other Version) int {
	return cmp.Or(cmp.Compare(v.Major, other.Major), cmp.Compare(v.Minor, other.Minor),
		cmp.Compare(v.Patch, other.Patch))
}

// comparePre orders the dotted suffixes of two pre-releases: numbers by value and before words, and
// the shorter before the longer.
func comparePre(a, b string) int {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(left), len(right)) {
		m, badLeft := strconv.ParseUint(left[i], 10, 64)
		n, badRight := strconv.ParseUint(right[i], 10, 64)
		var c int
		switch {
		case badLeft == nil && badRight == nil:
			c = cmp.Compare(m, n)
		case badLeft == nil:
			c = -1
		case badRight == nil:
			c = 1
		default:
			c = strings.Compare(left[i], right[i])
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(left), len(right))
}

// Constraint is a range of versions. The zero value admits every version, and runtimes without a
// known version.
type Constraint struct {
	text  string
	parts []comparison
}

// comparison is from <= version < below, or the comparison of its operator.
type comparison struct {
	op Op
	v  Version
	// below is the end of the range of ~ or ^.
	below Version
}

// Op is the operator of a comparison.
type Op string

// The operators of a constraint.
const (
	OpEqual   Op = "="
	OpAtLeast Op = ">="
	OpAtMost  Op = "<="
	OpAbove   Op = ">"
	OpBelow   Op = "<"
	OpTilde   Op = "~" // the same major and minor number, and at least
	OpCaret   Op = "^" // the same first non-zero number, and at least
)

// ops are in the order in which they are parsed.
var ops = []Op{OpAtLeast, OpAtMost, OpAbove, OpBelow, OpEqual, OpTilde, OpCaret}

// ParseConstraint parses a constraint: comparisons joined by commas, all of which must hold. The
// default operator is ~. Missing parts are 0. An empty constraint and * admit everything.
func ParseConstraint(text string) (Constraint, error) {
	var c Constraint
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" || part == "*" {
			continue
		}
		one, err := parseComparison(part)
		if err != nil {
			return Constraint{}, fmt.Errorf("%q is not a version constraint: %w", text, err)
		}
		c.parts = append(c.parts, one)
	}
	if len(c.parts) > 0 {
		c.text = strings.TrimSpace(text)
	}
	return c, nil
}

func parseComparison(part string) (comparison, error) {
	c := comparison{op: OpTilde}
	for _, op := range ops {
		if rest, ok := strings.CutPrefix(part, string(op)); ok {
			c.op, part = op, rest
			break
		}
	}
	part = strings.TrimSpace(part)
	if strings.ContainsAny(part, " \t|<>=()") { // no part may be ignored
		return c, fmt.Errorf("%q is not a version", part)
	}
	var err error
	if c.v, err = ParseVersion(part); err != nil {
		return c, err
	}
	switch {
	case c.op == OpTilde, c.op == OpCaret && c.v.Major == 0 && c.v.Minor > 0:
		c.below = Version{Major: c.v.Major, Minor: c.v.Minor + 1}
	case c.op == OpCaret && c.v.Major > 0:
		c.below = Version{Major: c.v.Major + 1}
	case c.op == OpCaret:
		c.below = Version{Patch: c.v.Patch + 1}
	}
	return c, nil
}

// Any reports whether the constraint admits everything.
func (c Constraint) Any() bool { return len(c.parts) == 0 }

// String is the constraint as it was written; empty if it admits everything.
func (c Constraint) String() string { return c.text }

// Admits reports whether the version is in the range. A pre-release must be named by a comparison
// with the same version.
func (c Constraint) Admits(v Version) bool {
	named := v.Pre == ""
	for _, part := range c.parts {
		if !part.holds(v) {
			return false
		}
		named = named || part.v.Pre != "" && part.v.triple(v) == 0
	}
	return named || c.Any()
}

func (c comparison) holds(v Version) bool {
	order := v.Compare(c.v)
	switch c.op {
	case OpEqual:
		return order == 0
	case OpAtLeast:
		return order >= 0
	case OpAtMost:
		return order <= 0
	case OpAbove:
		return order > 0
	case OpBelow:
		return order < 0
	case OpTilde, OpCaret:
		return order >= 0 && v.Compare(c.below) < 0
	default:
		return false
	}
}
