package act

import (
	"fmt"
	"strings"
)

// MaxTargets is how many rows one plan takes at most.
const MaxTargets = 5_000

// ForMarkedExecutions is what may be done with executions that are marked. Which of
// them it applies to is known when it is planned.
func ForMarkedExecutions(targets []Target) Menu {
	return Menu{Target: marked(targets, "execution"), Targets: targets, Items: []Item{
		{Kind: RetryExecution, Key: "r", Label: "retry", Help: "repeat those that have ended as new executions"},
		{Kind: CancelExecution, Key: "c", Label: "cancel", Help: "end them, or ask their workers to stop them"},
	}}
}

// ForMarkedQueues is what may be done with queues that are marked.
func ForMarkedQueues(targets []Target) Menu {
	return Menu{Target: marked(targets, "queue"), Targets: targets, Items: []Item{
		{Kind: PauseQueue, Key: "p", Label: "pause", Help: "admit nothing until they are resumed"},
		{Kind: ResumeQueue, Key: "u", Label: "resume", Help: "admit again, in the same order"},
	}}
}

// ForMarkedWorkers is what may be done with workers that are marked.
func ForMarkedWorkers(targets []Target) Menu {
	return Menu{Target: marked(targets, "worker"), Targets: targets, Items: []Item{
		{Kind: CordonWorker, Key: "c", Label: "cordon", Help: "give them nothing new"},
		{Kind: UncordonWorker, Key: "u", Label: "uncordon", Help: "give them work again"},
		{Kind: DrainWorker, Key: "d", Label: "drain", Help: "give them nothing new, let them end what they run"},
	}}
}

func marked(targets []Target, what string) Target {
	if len(targets) != 1 {
		what += "s"
	}
	return Target{Name: fmt.Sprintf("%d marked %s", len(targets), what)}
}

// Of is what the kind acts upon: execution, queue, worker and so on.
func (k Kind) Of() string {
	what, _, _ := strings.Cut(string(k), ".")
	return what
}
