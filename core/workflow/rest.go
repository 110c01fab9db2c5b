package workflow

// Unmade names the lists of a running workflow that still have children to be made.
func (d *Definition) Unmade(state *State) []string {
	var names []string
	for _, t := range d.All() {
		st := state.Tasks[t.Name]
		if t.WithItems != nil && st != nil && st.Status == TaskRunning && st.Next < st.Total {
			names = append(names, t.Name)
		}
	}
	return names
}

// Items is where the items of count children of a list are, from index first on.
func (t *Task) Items(first, count int) Range {
	return Range{From: first * t.width(), Count: count * t.width()}
}

// Rest renders count children of a list from index first on, however many may run
// at once. facts.Items holds their items. faults says by index why the parameters
// of a child cannot be rendered; its Start has none then.
//
// The error is a *NeedError, as that of Decide.
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
