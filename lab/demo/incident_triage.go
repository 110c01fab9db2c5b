package demo

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// triageCommands triage the incident. The tutorial has the same commands.
var triageCommands = []string{
	`attune-executor workers cordon annex-worker --reason 'it consumes nothing'`,
	`attune-executor dlq requeue --reason 'the mirror is back' ` +
		`$(attune-executor dlq list --open --type EventCreated --limit 1000 | awk '/^[0-9]/ {print $1}')`,
	`attune-executor dlq requeue --reason 'annex-worker did not begin them' ` +
		`$(attune-executor dlq list --open --action ops.print --limit 1000 | awk '/^[0-9]/ {print $1}')`,
	`attune-executor dlq discard-all --action ops.fax --note 'the engine has repeated them' --yes`,
	`attune-executor dlq export --open --reason poison --file unreadable.jsonl`,
	`attune-executor dlq discard-all --reason poison --note 'the publisher is stopped' --yes`,
	`attune-executor execution retry --action ops.invoice --status failed --since 5m --reason 'ops 1.4.0 is back' --yes`,
}

// triage runs the commands in a folder of its own.
func (i *incident) triage(ctx context.Context, news chan<- string) {
	if n := i.demo.earlier.open; n > 0 {
		notify(ctx, news,
			fmt.Sprintf("%d dead letters of earlier runs wait too; the commands decide the matching ones", n))
	}
	folder, err := os.MkdirTemp("", "attune-demo-")
	if err != nil {
		i.failures = append(i.failures, err.Error())
		return
	}
	defer os.RemoveAll(folder) //nolint:errcheck // the ledger has the same content
	for _, line := range triageCommands {
		notify(ctx, news, "$ "+line)
		// The shell finds this program.
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir = folder
		path := filepath.Dir(i.demo.cfg.Binary) + string(filepath.ListSeparator) + os.Getenv("PATH")
		cmd.Env = append(append(os.Environ(), i.demo.Env()...), "PATH="+path)
		out, err := cmd.CombinedOutput()
		text := strings.TrimSpace(string(out))
		notify(ctx, news, text[strings.LastIndexByte(text, '\n')+1:])
		if err != nil { // dead letters of earlier runs may be refused; undone checks this incident
			i.demo.logger.InfoContext(ctx, "Triage command refused", "command", line, "error", err, "output", text)
		}
	}
	err = i.bounded(ctx, func(ctx context.Context) error {
		return until(ctx, "wait for the results of the triage", func(ctx context.Context) (bool, error) {
			left, err := i.undone(ctx)
			return err == nil && len(left) == 0, err
		})
	})
	if err != nil {
		i.failures = append(i.failures, err.Error())
	}
}

// undone lists the waiting dead letters, the executions without success, and the events that the mirror
// has not consumed.
func (i *incident) undone(ctx context.Context) ([]string, error) {
	list, err := i.deadLetters(ctx)
	if err != nil {
		return nil, err
	}
	var left []string
	counts := waiting(list)
	for _, group := range slices.Sorted(maps.Keys(counts)) {
		left = append(left, fmt.Sprintf("%d dead letters wait: %s", counts[group], groupText[group]))
	}
	for _, part := range []struct {
		name       string
		executions []int64
	}{
		{"ops.print", i.prints},
		{"ops.fax", slices.Concat(i.faxes, i.expired, i.elsewhere)},
		{"ops.invoice", i.invoices},
	} {
		ends, err := i.lastOf(ctx, part.executions)
		if err != nil {
			return nil, err
		}
		var not []int64
		for _, l := range ends {
			if l.status != "completed" {
				not = append(not, l.execution)
			}
		}
		if len(not) > 0 {
			left = append(left, fmt.Sprintf("%d executions of %s did not complete, such as %v: retry them", len(not),
				part.name, not[:min(len(not), 3)]))
		}
	}
	_, missed, err := i.mirrored(ctx)
	if err != nil {
		return nil, err
	}
	if missed > 0 {
		left = append(left, fmt.Sprintf("the mirror did not take %d events", missed))
	}
	return left, nil
}

// groupText describes a group of dead letters and what to do with them.
var groupText = map[string]string{
	groupMirror: "events that expired while the mirror was away: requeue them",
	groupPrint:  "dispatches of ops.print that no worker started: requeue them, and another worker runs them",
	groupFax:    "dispatches of ops.fax that the engine has retried: discard them",
	groupBroken: "unreadable messages: export them, then discard them",
}

// mirrored counts the events of the incident, and those missing in the mirror.
func (i *incident) mirrored(ctx context.Context) (all, missed int64, err error) {
	err = i.demo.queryRow(ctx, "compare events with the mirror", sql.Unmirrored,
		args{i.beforeEvent, i.demo.mirror.events(), i.lastEvent}, &all, &missed)
	return all, missed, err
}

// report describes the end of an incident, and returns the broken promises.
func (i *incident) report(ctx context.Context) (lines, problems []string, err error) {
	if i.left != nil {
		return i.left.lines(i.demo.cfg.Practice, i.failures), i.left.lost, nil
	}
	list, err := i.deadLetters(ctx)
	if err != nil {
		return nil, nil, err
	}
	by := map[string]map[string]int{}
	total, alone := 0, 0
	for _, l := range list {
		if l.group == "" {
			alone++
			continue
		}
		if by[l.group] == nil {
			by[l.group] = map[string]int{}
		}
		by[l.group][l.decision]++
		total++
	}
	lines = append(lines, fmt.Sprintf("  %-21s %8d dead letters in %d groups; the engine decided %d others alone",
		i.name(), total, len(by), alone))
	for _, group := range groups {
		n := by[group]
		lines = append(lines, fmt.Sprintf("    %-33s %6d requeued, %d discarded, %d wait", groupName[group],
			n["requeued"], n["discarded"], n[""]))
	}
	left, err := i.undone(ctx)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case !i.demo.watched():
		problems = slices.Concat(i.failures, left, misjudged(by))
	case i.cut:
		lines = append(lines, "    not complete          you quit while it began")
	default: // the user may quit at any time
		for _, text := range i.failures {
			lines = append(lines, "    not brought about     "+text)
		}
		for _, text := range left {
			lines = append(lines, "    undone                "+text)
		}
		if len(i.failures)+len(left) == 0 {
			lines = append(lines, "    all is decided        no dead letter waits, every execution completed, and the mirror has every event")
		}
	}
	invoices, err := i.lastOf(ctx, i.invoices)
	if err != nil {
		return nil, nil, err
	}
	repeated := 0
	for _, l := range invoices {
		if l.status == "completed" && l.attempt != l.execution {
			repeated++
		}
	}
	lines = slices.Insert(lines, 1+len(groups), fmt.Sprintf("    %-33s %6d of %d invoices, repeated and completed",
		"failed by the release", repeated, len(invoices)))
	return lines, problems, nil
}

// name returns the title of the incident in the report.
func (i *incident) name() string {
	if len(i.demo.incidents) == 1 {
		return "incident"
	}
	return fmt.Sprintf("incident %d", i.number+1)
}

// earlier describes the ledger at the start of the run.
type earlier struct {
	newest int64 // the newest dead letter
	open   int64 // the number of waiting dead letters
}

func (d *Demo) readEarlier(ctx context.Context) error {
	return d.queryRow(ctx, "read the dead letters of earlier runs", sql.Earlier, args{int64(openEnd)},
		&d.earlier.newest, &d.earlier.open)
}

// incidentReport describes the end of each incident and the dead letters of earlier runs, and returns the
// broken promises.
func (d *Demo) incidentReport(ctx context.Context) (lines, problems []string, err error) {
	for _, i := range d.incidents {
		some, wrong, err := i.report(ctx)
		if err != nil {
			return nil, nil, err
		}
		lines, problems = append(lines, some...), append(problems, wrong...)
	}
	if len(d.incidents) == 0 && d.cfg.Faults && d.watched() {
		lines = []string{"  incident              had not begun when you quit"}
	}
	if d.earlier.open == 0 {
		return lines, problems, nil
	}
	var last, open int64
	err = d.queryRow(ctx, "read the dead letters of earlier runs", sql.Earlier, args{d.earlier.newest}, &last, &open)
	if err != nil {
		return nil, nil, err
	}
	text := fmt.Sprintf(
		"  earlier runs          %8d dead letters waited at the start: %d were decided in this run, %d wait",
		d.earlier.open, d.earlier.open-open, open)
	return append(lines, text), problems, nil
}

// next describes how to continue after a demo whose first incident has not begun or is not triaged.
func (d *Demo) next(ctx context.Context) ([]string, error) {
	if !d.watched() || !d.cfg.Faults || d.cfg.Practice != "" {
		return nil, nil
	}
	if len(d.incidents) > 0 && !d.incidents[0].cut {
		left, err := d.incidents[0].undone(ctx)
		if err != nil || len(left) == 0 {
			return nil, err
		}
	}
	return []string{
		"NEXT",
		"  Run `make demo` again: the ledger keeps its dead letters, and ten seconds after the start the next incident begins.",
		"  docs/tutorial-triage.md then leads to a clean queue, in ten keys or in seven commands.",
		"  Without the dashboard: `make demo </dev/null | cat` runs the commands and checks each execution.",
	}, nil
}

// misjudged returns the groups that the commands decided otherwise than the tutorial.
func misjudged(by map[string]map[string]int) (problems []string) {
	for _, group := range groups {
		want := "discarded"
		if group == groupMirror || group == groupPrint {
			want = "requeued"
		}
		for decision, n := range by[group] {
			if decision != want {
				problems = append(problems,
					fmt.Sprintf("%d dead letters of the group %s were decided as %q, not %s", n, group, decision, want))
			}
		}
		if by[group][want] == 0 {
			problems = append(problems, fmt.Sprintf("no dead letter of the group %s was %s", group, want))
		}
	}
	return problems
}

// groupName names the groups in the report.
var groupName = map[string]string{
	groupMirror: "events that the mirror missed", groupPrint: "not begun, to another worker",
	groupFax: "repeated already, stale", groupBroken: "unreadable",
}
