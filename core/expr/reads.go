package expr

import (
	"slices"
	"strings"
)

// Read is a name or a call without arguments in an expression, and the fields after it.
type Read struct {
	Root string   // parameters, or result()
	Path []string // the fields
	At   int      // its offset in bytes
	node node
}

// Name is the read as in an expression: parameters.region.
func (r Read) Name() string { return strings.Join(append([]string{r.Root}, r.Path...), ".") }

// Reads lists the reads of the expression, each once, in order. It leaves out fields of other values.
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

// Operand is a read with its value.
type Operand struct {
	Name  string
	Value any
}

// Operands lists the values of all reads, to explain the value of the expression. It leaves out reads that fail, and an
// expression that is only one read.
func (e *Expression) Operands(scope Scope) []Operand {
	if _, alone := chain(e.root); alone {
		return nil
	}
	ev := evaluation{source: e.source, scope: scope}
	var list []Operand
	for _, read := range e.Reads() {
		if value, err := ev.value(read.node); err == nil {
			list = append(list, Operand{Name: read.Name(), Value: value})
		}
	}
	return list
}
