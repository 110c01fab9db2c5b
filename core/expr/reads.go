package expr

import (
	"slices"
	"strings"
)

// Read is something that an expression reads: a name or a call without arguments, and
// the fields that follow it.
type Read struct {
	Root string   // parameters, or result()
	Path []string // the fields
	At   int      // in bytes, where it stands in the expression
	node node
}

// Name is the read as it would be written: parameters.region.
func (r Read) Name() string { return strings.Join(append([]string{r.Root}, r.Path...), ".") }

// Reads lists what the expression reads, each once, in order. Fields of anything but a
// name or a call without arguments are not among them.
func (e *Expression) Reads() []Read {
	var reads []Read
	var visit func(n node)
	visit = func(n node) {
		if read, ok := chain(n); ok {
			read.At, read.node = n.at, n
			if !slices.ContainsFunc(reads, func(r Read) bool { return r.Name() == read.Name() }) {
				reads = append(reads, read)
			}
			return
		}
		for _, part := range n.parts {
			visit(part)
		}
	}
	visit(e.root)
	return reads
}

func chain(n node) (Read, bool) {
	switch {
	case n.kind == nodeName:
		return Read{Root: n.text}, true
	case n.kind == nodeCall && len(n.parts) == 0:
		return Read{Root: n.text + "()"}, true
	case n.kind == nodeField:
		read, ok := chain(n.parts[0])
		read.Path = append(read.Path, n.text)
		return read, ok
	case n.kind == nodeIndex && n.parts[1].kind == nodeValue:
		key, isText := n.parts[1].value.(string)
		read, ok := chain(n.parts[0])
		read.Path = append(read.Path, key)
		return read, ok && isText
	}
	return Read{}, false
}

// Operand is something that an expression reads, with its value.
type Operand struct {
	Name  string
	Value any
}

// Operands are the values behind an expression, for a reason why it gave its own. Reads
// that fail are left out, and so is an expression that is one read.
func (e *Expression) Operands(scope Scope) []Operand {
	if _, alone := chain(e.root); alone {
		return nil
	}
	ev := evaluation{source: e.source, scope: scope}
	var list []Operand
	for _, read := range e.Reads() {
		if value, err := ev.value(read.node); err == nil {
			list = append(list, Operand{read.Name(), value})
		}
	}
	return list
}
