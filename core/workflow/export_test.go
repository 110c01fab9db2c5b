package workflow

import "github.com/attune-go/attune/core/expr"

// StartAtMost has plans make no more children of lists than so many, as far as a
// test is concerned.
func (d *Definition) StartAtMost(children int) { d.portion = children }

// Eval evaluates a value within a budget of its own.
func (v *Value) Eval(scope expr.Scope) (any, error) { return v.evalWithin(scope, &expr.Budget{}) }

// Holds reports whether a condition is true, within a budget of its own.
func (c *Condition) Holds(scope expr.Scope) (bool, error) {
	return c.holdsWithin(scope, &expr.Budget{})
}
