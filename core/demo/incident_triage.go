package demo

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed unmirrored.sql
var unmirroredSQL string

// triageCommands are what a person types to triage the incident. The tutorial has the
// same lines.
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

// triage types the commands, as a person does, in a folder of its own.
func (i *incident) triage(ctx context.Context, news chan<- string) {
	if n := i.demo.earlier.open; n > 0 {
		tell(ctx, news,
			fmt.Sprintf("%d dead letters of earlier runs wait too: the commands decide the ones they match", n))
	}
	folder, err := os.MkdirTemp("", "attune-demo-")
	if err != nil {
		i.failures = append(i.failures, err.Error())
		return
	}
	defer os.RemoveAll(folder) //nolint:errcheck // it is a copy of what the ledger has
	for _, line := range triageCommands {
		tell(ctx, news, "$ "+line)
		out, err := i.typed(ctx, folder, line)
		said := strings.Split(strings.TrimSpace(out), "\n")
		tell(ctx, news, said[len(said)-1])
		if err != nil { // what earlier runs have left may be refused; what counts is how this incident ends
			i.demo.logger.InfoContext(ctx, "A command of the triage was refused", "command", line, "error", err,
				"output", out)
		}
	}
	err = i.patiently(ctx, func(ctx context.Context) error {
		return until(ctx, "await what follows from the triage", func(ctx context.Context) (bool, error) {
			left, err := i.undone(ctx)
			return err == nil && len(left) == 0, err
		})
	})
	if err != nil {
		i.failures = append(i.failures, err.Error())
	}
}

// typed runs one line in a shell that finds this program.
func (i *incident) typed(ctx context.Context, folder, line string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = folder
	path := filepath.Dir(i.demo.cfg.Binary) + string(filepath.ListSeparator) + os.Getenv("PATH")
	cmd.Env = append(append(os.Environ(), i.demo.Env()...), "PATH="+path)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// undone says what the triage of the incident has left undone, nothing if all is done: the
// letters that wait, the executions that did not complete, and the events that the mirror
// did not take.
func (i *incident) undone(ctx context.Context) ([]string, error) {
	letters, err := i.letters(ctx)
	if err != nil {
		return nil, err
	}
	var left []string
	counts := waiting(letters)
	for _, group := range slices.Sorted(maps.Keys(counts)) {
		left = append(left, fmt.Sprintf("%d dead letters wait: %s", counts[group], groupText[group]))
	}
	for _, part := range []struct {
		name       string
		executions []int64
	}{{"ops.print", i.prints}, {"ops.fax", slices.Concat(i.faxes, i.expired, i.elsewhere)},
		{"ops.invoice", i.invoices}} {
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

// groupText says what to do with a group of dead letters.
var groupText = map[string]string{
	groupMirror: "events that expired while the mirror was away: requeue them",
	groupPrint:  "hand-overs of ops.print that no worker began: requeue them, and another worker runs them",
	groupFax:    "hand-overs of ops.fax that the engine has repeated: discard them",
	groupBroken: "messages that no program can read: export them, then discard them",
}

// mirrored counts the events of the incident, and the events that the mirror did not take.
func (i *incident) mirrored(ctx context.Context) (all, missed int64, err error) {
	err = i.demo.store.Pool().QueryRow(ctx, unmirroredSQL, i.beforeEvent, i.demo.mirror.events(),
		i.lastEvent).Scan(&all, &missed)
	if err != nil {
		return 0, 0, fmt.Errorf("compare events with the mirror: %w", err)
	}
	return all, missed, nil
}

// report says how an incident ended, and returns what did not go as planned.
func (i *incident) report(ctx context.Context) (lines, problems []string, err error) {
	if i.left != nil {
		if len(i.left.lost) > 0 {
			problems = i.left.lost
		}
		return i.left.lines(i.demo.cfg.Practice, i.failures), problems, nil
	}
	letters, err := i.letters(ctx)
	if err != nil {
		return nil, nil, err
	}
	by := map[string]map[string]int{}
	total, alone := 0, 0
	for _, l := range letters {
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
		text := fmt.Sprintf("    %-33s %6d requeued, %d discarded, %d wait", groupName[group], n["requeued"],
			n["discarded"], n[""])
		lines = append(lines, text)
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
	default: // people may leave when they like
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

// name is that of the incident among those of the run.
func (i *incident) name() string {
	if len(i.demo.incidents) == 1 {
		return "incident"
	}
	return fmt.Sprintf("incident %d", i.number+1)
}

//go:embed earlier.sql
var earlierSQL string

// earlier is what earlier runs in the same folder have left in the ledger.
type earlier struct {
	letter int64 // the newest dead letter before this run
	open   int64 // how many waited then
}

// readEarlier notes what waits in the ledger before the run.
func (d *Demo) readEarlier(ctx context.Context) error {
	const newest = int64(math.MaxInt64)
	if err := d.store.Pool().QueryRow(ctx, earlierSQL, newest).Scan(&d.earlier.letter, &d.earlier.open); err != nil {
		return fmt.Errorf("read the dead letters of earlier runs: %w", err)
	}
	return nil
}

// incidentReport says how each incident ended, or that none began, what became of
// dead letters of earlier runs, and what was not as promised.
func (d *Demo) incidentReport(ctx context.Context) (lines, problems []string, err error) {
	for _, i := range d.incidents {
		told, wrong, err := i.report(ctx)
		if err != nil {
			return nil, nil, err
		}
		lines, problems = append(lines, told...), append(problems, wrong...)
	}
	if len(d.incidents) == 0 && d.cfg.Faults && d.watched() {
		lines = []string{"  incident              had not begun when you quit"}
	}
	if d.earlier.open == 0 {
		return lines, problems, nil
	}
	var last, open int64
	if err := d.store.Pool().QueryRow(ctx, earlierSQL, d.earlier.letter).Scan(&last, &open); err != nil {
		return nil, nil, fmt.Errorf("read the dead letters of earlier runs: %w", err)
	}
	text := fmt.Sprintf(
		"  earlier runs          %8d dead letters waited at the start: %d were decided in this run, %d wait",
		d.earlier.open, d.earlier.open-open, open)
	return append(lines, text), problems, nil
}

// next says what to do after a demo whose first incident has not begun, or has left dead
// letters that wait or executions that have not completed; nothing otherwise.
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
		"  `make demo` again: what waits in the ledger still does, and ten seconds after the dashboard opens an incident begins.",
		"  docs/tutorial-triage.md then leads to a clean queue, in ten keys or in seven commands.",
		"  Without the dashboard: `make demo </dev/null | cat` types the commands and says what came of each execution.",
	}, nil
}

// misjudged names groups that the commands did not decide as the tutorial says.
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
	groupFax:    "repeated already, stale",
	groupBroken: "unreadable",
}
