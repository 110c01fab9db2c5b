package submit

import "fmt"

// Priority is the lane in which an execution waits, spelled as the column
// execution.priority.
type Priority int16

// The lanes. Within one the order of arrival counts.
const (
	PriorityLow    Priority = -1
	PriorityNormal Priority = 0
	PriorityHigh   Priority = 1
)

func (p Priority) valid() bool { return p >= PriorityLow && p <= PriorityHigh }

// ParsePriority reads the name of a lane.
func ParsePriority(name string) (Priority, error) {
	switch name {
	case "high":
		return PriorityHigh, nil
	case "normal":
		return PriorityNormal, nil
	case "low":
		return PriorityLow, nil
	}
	return PriorityNormal, fmt.Errorf("priority %q is unknown: use high, normal or low", name)
}
