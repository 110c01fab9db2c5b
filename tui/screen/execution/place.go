package execution

import "strconv"

// Shown names the execution in sight.
func (x *Execution) Shown() string { return strconv.FormatInt(x.id, 10) }

// ShowAgain turns back to an execution.
func (x *Execution) ShowAgain(name string) {
	if id, err := strconv.ParseInt(name, 10, 64); err == nil {
		x.Show(id)
	}
}
