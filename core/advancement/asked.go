package advancement

import "github.com/attune-go/attune/core/workflow"

// answers are the facts that one decision has received so far. Each request for facts restarts the
// decision, which ends only because every request must ask for new facts.
type answers struct {
	course *course
	items  map[string]int // number of items, by task; the start index does not change
}

// nothing is the set of facts before the first request.
func (c *course) nothing() answers { return answers{course: c, items: map[string]int{}} }

// lacks reports whether the decision requests facts that it has not received, and records them as
// received.
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
