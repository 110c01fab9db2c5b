package act

import (
	"fmt"
	"strconv"
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

// ForMarkedWorkflows is what may be done with workflows that are marked.
func ForMarkedWorkflows(targets []Target) Menu {
	return Menu{Target: marked(targets, "workflow"), Targets: targets, Items: []Item{
		{Kind: PauseWorkflow, Key: "p", Label: "pause", Help: "start nothing more in them until they are resumed"},
		{Kind: ResumeWorkflow, Key: "u", Label: "resume", Help: "go on"},
		{Kind: RetryWorkflow, Key: "r", Label: "begin anew", Help: "those that have ended, all of each, as new executions"},
		{Kind: CancelWorkflow, Key: "c", Label: "cancel", Help: "start nothing more in them and end them"},
	}}
}

// ForMarkedInquiries is what may be done with questions that are marked: to give all
// of them the answer whose form is that of one of them.
func ForMarkedInquiries(targets []Target, one Menu) Menu {
	menu := Menu{Target: marked(targets, "inquiry"), Targets: targets}
	for _, item := range one.Items {
		if item.Kind == AnswerInquiry {
			item.Label, item.Help = "answer all alike", "those for which it fits; the first answer counts"
			menu.Items = append(menu.Items, item)
		}
	}
	return menu
}

func marked(targets []Target, what string) Target {
	return Target{Name: fmt.Sprintf("%d marked %s", len(targets), Counted(len(targets), what))}
}

// Counted is the word for one thing, or for as many as there are.
func Counted(n int, what string) string {
	switch {
	case n == 1:
		return what
	case strings.HasSuffix(what, "y"):
		return strings.TrimSuffix(what, "y") + "ies"
	default:
		return what + "s"
	}
}

// Ordinal writes a place in a row: 1st, 2nd, 3rd.
func Ordinal(n int64) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.FormatInt(n, 10) + suffix
}

// Of is what the kind acts upon: execution, queue, worker and so on.
func (k Kind) Of() string {
	what, _, _ := strings.Cut(string(k), ".")
	return what
}
