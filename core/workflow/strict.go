package workflow

// errorRules says what an error in an expression leads to. The two values below, and
// that only a strict workflow evaluates the when of its tasks, are the difference
// between lenient and strict workflows.
type errorRules struct {
	// refuse makes an error that shows in the file a mistake of the definition.
	// Otherwise it is a warning, and an error again when the expression is evaluated.
	refuse bool
	// fail has an error in when or publish fail its task, unless another transition
	// fires, and one in output_map the workflow. Otherwise it is logged, and decides no
	// more than this condition, variable or output.
	fail bool
}

var (
	lenient = errorRules{}
	strict  = errorRules{refuse: true, fail: true}
)

// onError are the rules of the definition: lenient, as published, unless it says
// strict: true.
func (d *Definition) onError() errorRules {
	if d.Strict {
		return strict
	}
	return lenient
}
