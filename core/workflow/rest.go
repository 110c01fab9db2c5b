package workflow

// Unmade names the tasks over lists of a running workflow that have children to make.
func (d *Definition) Unmade(state *State) []string {
	var names []string
	for _, t := range d.All() {
		st := state.Tasks[t.Name]
		if t.WithItems != nil && st != nil && st.Status == TaskRunning && max(st.Next, st.Made) < st.Total {
			names = append(names, t.Name)
		}
	}
	return names
}

// Items is the range of the items of count children of a list, from index first on.
func (t *Task) Items(first, count int) Range {
	return Range{From: first * t.width(), Count: count * t.width()}
}

// Rest renders count children of a list from index first on, beyond its concurrency. facts.Items has their items.
// faults has the errors of parameters by index; the Start of such a child has no parameters. The error is a *NeedError.
func (d *Definition) Rest(
	state *State, facts Facts, task string, first, count int,
) (starts []Start, faults map[int]error, err error) {
	x, err := d.decisionOn(state, nil, facts)
	if err != nil {
		return nil, nil, err
	}
	t := d.Task(task)
	faults = map[int]error{}
	for index := first; index < first+count; index++ {
		at, err := x.place(t, index)
		if err != nil {
			return nil, nil, err
		}
		child, err := x.child(t, at)
		if needs(err) != nil {
			return nil, nil, err
		}
		if err != nil {
			child = Start{Task: t.Name, Action: t.Action, TriggeredBy: x.cause(t), Index: &at.index}
			faults[index] = err
		}
		starts = append(starts, child)
	}
	return starts, faults, nil
}
