package workflow

// StartAtMost has plans make no more children of lists than so many, as far as a
// test is concerned.
func (d *Definition) StartAtMost(children int) { d.portion = children }
