package workflow

// topological lists the tasks of the upper level, each after its predecessors and otherwise in the order of the file.
// Tasks of a circle come last.
func (d *Definition) topological() []*Task {
	missing := map[*Task]int{}
	for _, t := range d.Tasks {
		missing[t] = len(t.Inbound)
	}
	done := map[*Task]bool{}
	list := make([]*Task, 0, len(d.Tasks))
	var put func(t *Task)
	put = func(t *Task) {
		done[t] = true
		list = append(list, t)
		for _, name := range t.Outbound {
			next := d.names[name]
			if missing[next]--; missing[next] == 0 && !done[next] {
				put(next)
			}
		}
	}
	for _, t := range d.Tasks {
		if len(t.Inbound) == 0 {
			put(t)
		}
	}
	for _, t := range d.Tasks {
		if !done[t] {
			list = append(list, t)
		}
	}
	return list
}

// dominators has the immediate dominator of each task: the last task on every path to it. It is nil for entries and for
// tasks with paths from several entries.
func (d *Definition) dominators() map[*Task]*Task {
	parent, depth := map[*Task]*Task{}, map[*Task]int{}
	known := map[*Task]bool{}
	common := func(a, b *Task) *Task {
		for a != b {
			if a == nil || b == nil {
				return nil
			}
			if depth[a] >= depth[b] {
				a = parent[a]
			} else {
				b = parent[b]
			}
		}
		return a
	}
	for _, t := range d.sorted {
		var over *Task
		first := true
		for _, name := range t.Inbound {
			from := d.names[name]
			if !known[from] { // in a circle
				continue
			}
			if first {
				over, first = from, false
				continue
			}
			over = common(over, from)
		}
		parent[t], known[t] = over, true
		if over != nil {
			depth[t] = depth[over] + 1
		}
	}
	return parent
}
