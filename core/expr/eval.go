package expr

import (
	"fmt"

	"github.com/attune-go/attune/core/jsonvalue"
)

// Scope resolves the names and functions of an expression.
type Scope interface {
	// Lookup returns the value of a name; known is false if there is none. The value must be one of the function Value
	// or an Object; it is not changed. An error stops the evaluation; errors.As finds it in the error of Eval.
	Lookup(name string) (value any, known bool, err error)
	// Call calls a function that is not built in; known is false if there is none.
	Call(name string, arguments []any) (value any, known bool, err error)
}

// Object is an object with fields that are fetched on demand. Only Lookup and other Objects may return it. A field, an
// index, in, keys and length fetch no other fields; any other use fetches all and makes an ordinary object.
type Object interface {
	// Keys are the names of all fields.
	Keys() []string
	// Get returns a field; known is false if there is none. An error stops the evaluation.
	Get(key string) (value any, known bool, err error)
}

// Valued is an Object that also has another value. A field that Get does not know, and any use other than a field, uses
// that value.
type Valued interface {
	Object
	// Value is one of the function Value.
	Value() any
}

// Names is a Scope without functions.
type Names map[string]any

// Lookup implements Scope.
func (n Names) Lookup(name string) (any, bool, error) {
	value, ok := n[name]
	return value, ok, nil
}

// Call implements Scope.
func (Names) Call(string, []any) (any, bool, error) { return nil, false, nil }

// Bounds of one evaluation.
const (
	maxSteps  = 100_000
	maxRender = 1_000_000 // steps of all templates of a value
	maxSize   = 4 << 20   // of all built values, about the bytes of JSON
	// stepBytes is the part of a text that one step may visit. A step is at most half a microsecond of a processor, so
	// that no evaluation takes more than 50 ms.
	stepBytes = 50
)

// Budget counts the cost of several evaluations. The zero value is unused.
type Budget struct{ steps, size int }

// Steps is the number of spent steps.
func (b *Budget) Steps() int { return b.steps }

// Eval evaluates the expression.
func (e *Expression) Eval(scope Scope) (any, error) { return e.EvalWithin(scope, &Budget{}) }

// EvalWithin is Eval for one of several evaluations that share a budget.
func (e *Expression) EvalWithin(scope Scope, all *Budget) (any, error) {
	ev := evaluation{source: e.source, scope: scope, size: all.size}
	if all.steps > maxRender {
		return nil, ev.fail(e.root, "the templates take more than %d steps", maxRender)
	}
	value, err := ev.value(e.root)
	all.steps, all.size = all.steps+ev.steps, ev.size
	return value, err
}

// evaluation is one evaluation with its cost so far.
type evaluation struct {
	source string
	scope  Scope
	steps  int
	size   int
}

// broken wraps an error of the scope, for errors.As of the caller.
func (ev *evaluation) broken(n node, err error) error {
	return &Error{Source: ev.source, Offset: n.at, Text: n.text + ": " + err.Error(), Cause: err}
}

func (ev *evaluation) fail(n node, format string, args ...any) error {
	return &Error{Source: ev.source, Offset: n.at, Text: fmt.Sprintf(format, args...)}
}

// spend counts steps and fails beyond their bound.
func (ev *evaluation) spend(n node, steps int) error {
	if ev.steps += steps; ev.steps > maxSteps {
		return ev.fail(n, "the evaluation takes more than %d steps", maxSteps)
	}
	return nil
}

// grow counts the size of built values and fails beyond its bound.
func (ev *evaluation) grow(n node, size int) error {
	if ev.size += size; size > maxSize || ev.size > maxSize {
		return ev.fail(n, "the evaluation builds more than %d bytes", maxSize)
	}
	return nil
}

// value is the value of a part, with all fields of Objects.
func (ev *evaluation) value(n node) (any, error) {
	value, err := ev.lazy(n)
	if err != nil {
		return nil, err
	}
	return ev.loaded(n, value, 0)
}

// loaded converts an Object to an ordinary object.
func (ev *evaluation) loaded(n node, value any, depth int) (any, error) {
	value = unboxed(value)
	object, ok := value.(Object)
	if !ok {
		return value, nil
	}
	if depth > jsonvalue.Depth {
		return nil, ev.fail(n, "the value is nested deeper than %d", jsonvalue.Depth)
	}
	all := map[string]any{}
	for _, key := range object.Keys() {
		if err := ev.spend(n, 1); err != nil {
			return nil, err
		}
		field, known, err := object.Get(key)
		if err != nil {
			return nil, ev.broken(node{at: n.at, text: key}, err)
		}
		if !known {
			continue
		}
		if all[key], err = ev.loaded(n, field, depth+1); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// lazy is the value of a part, which may be an Object but not a Valued.
func (ev *evaluation) lazy(n node) (any, error) {
	value, err := ev.boxed(n)
	return unboxed(value), err
}

func unboxed(value any) any {
	if valued, ok := value.(Valued); ok {
		return valued.Value()
	}
	return value
}

// boxed is the value of a part, which may be an Object or a Valued.
func (ev *evaluation) boxed(n node) (any, error) {
	if err := ev.spend(n, 1); err != nil {
		return nil, err
	}
	switch n.kind {
	case nodeValue:
		return n.value, nil
	case nodeName:
		value, known, err := ev.scope.Lookup(n.text)
		if err != nil {
			return nil, ev.broken(n, err)
		}
		if !known {
			return nil, ev.fail(n, "there is no %s", n.text)
		}
		return value, nil
	case nodeList:
		return ev.values(n)
	case nodeField:
		return ev.field(n)
	case nodeIndex:
		return ev.index(n)
	case nodeCall:
		return ev.call(n)
	case nodeUnary:
		return ev.unary(n)
	default:
		return ev.binary(n)
	}
}

func (ev *evaluation) values(n node) ([]any, error) {
	list := make([]any, len(n.parts))
	for i, part := range n.parts {
		var err error
		if list[i], err = ev.value(part); err != nil {
			return nil, err
		}
	}
	return list, ev.grow(n, 8*len(list))
}

// a describes a value by its kind only, since it may be secret.
func a(v any) string {
	switch kind := kindOf(v); kind {
	case "null":
		return kind
	case "array", "object":
		return "an " + kind
	default:
		return "a " + kind
	}
}

// weight is the number of steps for visiting a value.
func weight(v any) int {
	switch v := v.(type) {
	case string:
		return len(v) / stepBytes
	case []any:
		total := len(v)
		for _, item := range v {
			total += weight(item)
		}
		return total
	case map[string]any:
		total := len(v)
		for _, item := range v {
			total += weight(item)
		}
		return total
	default:
		return 0
	}
}

// call calls a function of the scope, or else a built-in one.
func (ev *evaluation) call(n node) (any, error) {
	if value, done, err := ev.callOnKeys(n); done || err != nil {
		return value, err
	}
	arguments, err := ev.values(n)
	if err != nil {
		return nil, err
	}
	value, known, err := ev.scope.Call(n.text, arguments)
	if err != nil {
		return nil, ev.broken(n, err)
	}
	if known {
		return value, nil
	}
	function, ok := builtins[n.text]
	if !ok {
		return nil, ev.fail(n, "there is no function %s", n.text)
	}
	if count := len(arguments); count < function.least || count > function.most {
		return nil, ev.fail(n, "%s takes %s, not %d", n.text, function.takes(), count)
	}
	for _, argument := range arguments {
		if err := ev.spend(n, weight(argument)); err != nil {
			return nil, err
		}
	}
	return function.do(call{evaluation: ev, node: n}, arguments)
}
