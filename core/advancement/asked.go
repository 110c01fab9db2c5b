package advancement

import "github.com/attune-go/attune/core/workflow"

// answers are what one decision was given so far. Each time it asks, it is made from the
// beginning, which ends only as long as it asks for something new.
type answers struct {
	course *course
	items  map[string]int // how many, by task; from where does not change
}

// nothing is what a decision was given before it asks.
func (c *course) nothing() answers { return answers{course: c, items: map[string]int{}} }

// lacks reports whether the decision asks for something that it was not given, and
// takes it for given.
func (a answers) lacks(need *workflow.NeedError) bool {
	lacks := false
	for _, task := range need.Results {
		_, there := a.course.results[task]
		lacks = lacks || !there
	}
	for _, child := range need.Children {
		_, there := a.course.children[child]
		lacks = lacks || !there
	}
	for task, part := range need.Items {
		lacks = lacks || part.Count > a.items[task]
		a.items[task] = max(a.items[task], part.Count)
	}
	return lacks
}
