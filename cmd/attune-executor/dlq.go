package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/monitor"
)

func newDeadLettersCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "dlq",
		Aliases: []string{"dead-letters"},
		Short:   "Take, look at and decide about messages that died",
		Long: "Look at dead letters, the messages that expired, were rejected or could not be processed, and decide about those\n" +
			"that wait for a person. Every one of them is a row of the ledger, with what was known and what was decided.",
		Example: "  attune-executor dlq list --open\n  attune-executor dlq show 12\n  attune-executor dlq requeue 12 --reason 'the worker is back'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDLQListCommand(a), &cobra.Command{
		Use:     "show ID",
		Short:   "Show one dead letter: the message, its execution as it is now, and what a requeue would do",
		Example: "  attune-executor dlq show 12\n  attune-executor dlq show 12 -o json | jq .body",
		Args:    oneArg("the id of a dead letter"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.showLetter(cmd, args[0]) },
	}, newDLQTakeCommand(a), newDLQRequeueCommand(a), newDLQDiscardCommand(a), newDLQDiscardAllCommand(a), newDLQExportCommand(a), newDLQStatsCommand(a))
	return cmd
}

// ageValue is a flag that takes a duration such as 90s or 12h, or days as in 7d.
type ageValue time.Duration

// String writes the duration, empty for none.
func (v *ageValue) String() string {
	if *v == 0 {
		return ""
	}
	return time.Duration(*v).String()
}

// Set reads the duration.
func (v *ageValue) Set(text string) error {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		d = time.Duration(n * 24 * float64(time.Hour))
	}
	if err != nil || d <= 0 {
		return errors.New("it is not a time such as 90s, 12h or 7d")
	}
	*v = ageValue(d)
	return nil
}

// Type names the kind of value in help texts.
func (v *ageValue) Type() string { return "duration" }

// letterFlags adds the filters that list, discard-all and export share.
func letterFlags(flags *pflag.FlagSet, f *monitor.DeadLetterFilter) {
	flags.StringVar(&f.Reason, "reason", "", "only what died for this reason: expired, rejected, maxlen, delivery_limit, poison, unknown")
	flags.StringVar(&f.Action, "action", "", "only about actions whose ref matches; * stands for anything")
	flags.StringVar(&f.Worker, "worker", "", "only what was on its way to this worker, by id or name")
	flags.StringVar(&f.Type, "type", "", "only messages of this type, such as ExecutionRequested")
	flags.Int64Var(&f.Execution, "execution", 0, "only about this execution")
	flags.Var((*ageValue)(&f.MaxAge), "since", "only what was stored within this long, such as 12h or 7d")
	flags.Var((*ageValue)(&f.MinAge), "older-than", "only what was stored longer ago than this")
}

// decisionFlags adds the filters by what was decided.
func decisionFlags(flags *pflag.FlagSet, f *monitor.DeadLetterFilter) {
	flags.BoolVar(&f.Open, "open", false, "only what waits for a person")
	flags.BoolVar(&f.Decided, "decided", false, "only what was decided")
	flags.StringSliceVar(&f.Decisions, "decision", nil, "only these decisions: "+strings.Join(monitor.LetterDecisions, ", "))
}

func newDLQListCommand(a *app) *cobra.Command {
	filter := monitor.DeadLetterFilter{}
	cursor := int64(0)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, the newest first",
		Long: "List the dead letters of the ledger, the newest first. Messages that lie in the broker's queue are not in it while no\n" +
			"engine handles them (dead_letter.enabled false, or none runs): `attune-executor dlq take` takes them into the ledger.",
		Example: "  attune-executor dlq list --open\n  attune-executor dlq list --decision failed --worker worker-node-01 --since 12h",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 1 {
				return usageErrorf("--limit must be at least 1")
			}
			if err := filter.Check(); err != nil {
				return usageErrorf("%w", err)
			}
			return a.listLetters(cmd, filter, cursor)
		},
	}
	flags := cmd.Flags()
	decisionFlags(flags, &filter)
	letterFlags(flags, &filter)
	flags.IntVar(&filter.Limit, "limit", 20, "how many to list")
	flags.Int64Var(&cursor, "cursor", 0, "go on below this id")
	return cmd
}

func (a *app) listLetters(cmd *cobra.Command, filter monitor.DeadLetterFilter, cursor int64) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	page, err := c.monitor().LedgerList(cmd.Context(), filter, cursor)
	if err != nil {
		return err
	}
	return a.print(cmd, page, func(w io.Writer) error {
		if len(page.List) > 0 {
			if err := letterTable(w, page); err != nil {
				return err
			}
		} else if err := row(w, c.noLetters(page)); err != nil {
			return err
		}
		switch {
		case page.Bounded:
			return row(w, fmt.Sprintf("the search stopped at its bound; more may match: --cursor %d goes on", page.Next))
		case page.Next != 0:
			return row(w, fmt.Sprintf("more: --cursor %d", page.Next))
		}
		return nil
	})
}

// noLetters says why there is nothing to list.
func (c *client) noLetters(page *monitor.LedgerPage) string {
	f := page.Filter
	f.Limit = 0
	switch {
	case page.From != 0:
		return "no more dead letters match"
	case f.Open && f.Action+f.Reason+f.Worker+f.Type == "" && f.Execution == 0 && f.MaxAge == 0 && f.MinAge == 0 && len(f.Decisions) == 0:
		return "no dead letter waits for a person"
	case !plainFilter(f):
		return "no dead letter matches; " + countText(page.Open) + " wait for a person"
	case !c.cfg.MessageQueue.RabbitMQ.DeadLetter.Enabled:
		return "no dead letters are recorded while message_queue.rabbitmq.dead_letter.enabled is false: `attune-executor dlq take` takes what lies in the queue"
	default:
		return "no dead letters: nothing has died, or no engine has handled it yet: `attune-executor dlq take` takes what lies in the queue"
	}
}

func plainFilter(f monitor.DeadLetterFilter) bool {
	return !f.Open && !f.Decided && len(f.Decisions) == 0 && f.Action+f.Reason+f.Worker+f.Type == "" && f.Execution == 0 && f.MaxAge == 0 && f.MinAge == 0
}

// tableWidth is what a table of dead letters fits into.
const tableWidth = 80

func letterTable(w io.Writer, page *monitor.LedgerPage) error {
	cells := [][]string{{"ID", "AGE", "WHAT", "REASON", "DECISION", "EXECUTION", "ACTION", "WORKER"}}
	for i := range page.List {
		e := &page.List[i]
		cells = append(cells, []string{
			strconv.FormatInt(e.ID, 10), age(page.At.Sub(e.At)), e.What, e.Reason, e.Decision, idText(e.Execution), dash(e.ActionRef), letterWorker(e),
		})
	}
	for _, line := range fit(cells, 6, 7) {
		if err := row(w, line...); err != nil {
			return err
		}
	}
	return nil
}

// fit cuts the flexible columns, which come last, so that a line of the table is
// no wider than tableWidth.
func fit(cells [][]string, flexible ...int) [][]any {
	used := 2 * (len(cells[0]) - 1)
	widest := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			line[i] = clean(cell)
			widest[i] = max(widest[i], len([]rune(line[i])))
		}
	}
	for i, n := range widest {
		if i < flexible[0] {
			used += n
		}
	}
	for left, i := tableWidth-used, 0; i < len(flexible); i++ {
		share := max(left/(len(flexible)-i), 6)
		if i+1 < len(flexible) { // what the last column does not need is the others'
			share = max(share, left-widest[flexible[i+1]])
		}
		widest[flexible[i]] = min(widest[flexible[i]], share)
		left -= widest[flexible[i]]
	}
	out := make([][]any, len(cells))
	for n, line := range cells {
		for i, cell := range line {
			out[n] = append(out[n], cut(cell, widest[i]))
		}
	}
	return out
}

// cut shortens a text in its middle, since names differ at their ends.
func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width || width < 3 {
		return text
	}
	head := (width - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}

// age writes how long ago something was in few digits.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(max(int(d.Seconds()), 0)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	default:
		return strconv.Itoa(int(d.Hours()/24)) + "d"
	}
}

func idText(id *int64) string {
	if id == nil {
		return "-"
	}
	return strconv.FormatInt(*id, 10)
}

func letterWorker(e *monitor.LedgerEntry) string {
	if e.WorkerName != "" {
		return e.WorkerName
	}
	return idText(e.WorkerID)
}

// management connects to the management API, nil where none is configured. The
// caller closes it.
func (c *client) management() (*broker.Management, string, error) {
	if c.cfg.MessageQueue.ManagementURL == "" {
		return nil, "", nil
	}
	vhost, err := broker.VHostOf(c.cfg.MessageQueue.URL)
	if err != nil {
		return nil, "", usageErrorf("%w: correct message_queue.url (%s)", err, c.cfg.Source("message_queue.url"))
	}
	m, err := broker.NewManagement(c.cfg.MessageQueue.ManagementURL, vhost, doctorPatience)
	if err != nil {
		return nil, "", usageErrorf("%w: correct message_queue.management_url (%s)", err, c.cfg.Source("message_queue.management_url"))
	}
	return m, vhost, nil
}

// letterID reads the id of a dead letter.
func letterID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usageErrorf("%q is not the id of a dead letter", text)
	}
	return id, nil
}

func noLetter(id int64) error {
	return failedErrorf("there is no dead letter %d: `attune-executor dlq list` shows the newest", id)
}
