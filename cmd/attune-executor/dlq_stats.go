package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/supervise"
)

func newDLQExportCommand(a *app) *cobra.Command {
	filter, file, limit := monitor.DeadLetterFilter{}, "", 0
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write complete dead letters, one line of JSON each",
		Long: "Write complete dead letters, the newest first, one JSON object a line whatever -o says. The body is\n" +
			"body, or body_base64 if it is not UTF-8. Nothing is decided. --file creates a new file that only its\n" +
			"owner can read, because bodies hold parameters.",
		Example: "  attune-executor dlq export --open --file letters.jsonl\n" +
			"  attune-executor dlq export --since 1h | jq -r .detail",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usageErrorf("--limit must not be negative")
			}
			if err := filter.Check(); err != nil {
				return usageErrorf("%w", err)
			}
			return a.exportDeadLetters(cmd, filter, limit, file)
		},
	}
	decisionFlags(cmd.Flags(), &filter)
	deadLetterFlags(cmd.Flags(), &filter)
	cmd.Flags().StringVar(&file, "file", "", "write to this new file instead of standard output")
	cmd.Flags().IntVar(&limit, "limit", 0, "how many to write at most, 0 for all")
	return cmd
}

func (a *app) exportDeadLetters(cmd *cobra.Command, filter monitor.DeadLetterFilter, limit int,
	file string,
) (err error) {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	ctx, stop := supervise.Interruptible(cmd.Context())
	defer stop()
	out := cmd.OutOrStdout()
	if file != "" {
		made, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			return refusedErrorf("%s exists already: name a new file", file)
		}
		if err != nil {
			return failedErrorf("export: %w", err)
		}
		defer func() { err = errors.Join(err, made.Close()) }()
		out = made
	}
	n, err := c.monitor().ExportDeadLetters(ctx, filter, limit, func(deadLetter *monitor.ExportedDeadLetter) error {
		line, err := json.Marshal(deadLetter)
		if err != nil {
			return fmt.Errorf("encode dead letter %d: %w", deadLetter.ID, err)
		}
		// whole lines, so that an interrupted export ends with a whole one
		_, err = io.WriteString(out, phrase.JSON(string(line))+"\n")
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return failedErrorf("interrupted after %s", count(n, "dead letter"))
	case err != nil:
		return fmt.Errorf("export after %s: %w", count(n, "dead letter"), err)
	case file != "":
		a.notef("%s in %s", count(n, "dead letter"), file)
	case n == 0:
		a.notef("no dead letter matches")
	}
	return nil
}

func newDLQStatsCommand(a *app) *cobra.Command {
	since, by := monitor.DefaultStatsWindow, "reason"
	cmd := reading(a, &cobra.Command{
		Use:   "stats",
		Short: "Count dead letters and lost work over time",
		Long: "Count the dead letters, and the executions that their workers lost, over the last day or --since: by\n" +
			"reason of the dead letters, action, worker, cause of the loss, or hour (day beyond three days). At\n" +
			"most the latest 50000 of either count.",
		Example: "  attune-executor dlq stats --since 7d --by worker\n" +
			"  attune-executor dlq stats -o json | jq .by_cause",
	}, func() error {
		if _, err := (&monitor.LedgerStats{}).Tallies(by); err != nil {
			return usageErrorf("--by %s: %w", by, err)
		}
		return nil
	}, func(c *client, _ []string) (*monitor.LedgerStats, error) {
		return c.deadLetterStats(since)
	}, func(w *page, stats *monitor.LedgerStats) { statsPage(w, stats, by) })
	cmd.Flags().Var(phrase.SpanFlag{To: &since, Age: true}, "since", "how far to look back, such as 12h or 7d")
	cmd.Flags().StringVar(&by, "by", by, "reason, action, worker, cause or hour")
	words(cmd, "by", "reason", "action", "worker", "cause", "hour")
	return cmd
}

// ofLedger reads dead letters. It asks the management API too, if one is configured.
func ofLedger[V any](c *client, read func(m *monitor.Monitor) (V, error)) (value V, err error) {
	deps := monitor.Deps{Store: c.store}
	management, vhost, err := openManagement(c.cfg, doctorTimeout)
	if err != nil {
		return value, err
	}
	if management != nil {
		defer management.Close()
		deps.Broker = monitor.NewManagementReader(management, vhost)
	}
	return read(monitor.New(monitor.Config{}, deps))
}

func (c *client) deadLetterStats(since time.Duration) (*monitor.LedgerStats, error) {
	stats, err := ofLedger(c, func(m *monitor.Monitor) (*monitor.LedgerStats, error) {
		return m.LedgerStats(c.cmd.Context(), since)
	})
	if errors.Is(err, monitor.ErrFilter) {
		err = usageErrorf("--since %s: %w", since, err)
	}
	return stats, err
}

func statsPage(w *page, s *monitor.LedgerStats, by string) {
	depth := "unknown"
	if s.Queue != nil && !s.Queue.Uncounted {
		depth = fmt.Sprintf("%d, %s", s.Queue.Ready, count(int(s.Queue.Consumers), "handler"))
	}
	open := countText(s.Open)
	if s.Oldest != nil {
		open += ", the first for " + age(s.At.Sub(*s.Oldest))
	}
	w.row("in the queue", depth)
	w.row("waiting for a person", open)
	w.row("pace", strconv.FormatFloat(s.PerMinute, 'f', 1, 64)+" a minute over the last "+age(monitor.RatePace))
	w.row("letters", countText(s.DeadLetters)+" in "+age(s.Window))
	w.row("lost work", countText(s.Lost)+" in "+age(s.Window))
	if s.Latency != nil {
		w.row("death to ledger", short(*s.Latency)+" on average")
	}
	w.row()
	tallies, _ := s.Tallies(by) // by was checked
	tallyTable(w, s, by, tallies)
}

// tallyTable omits the columns that a grouping lacks: reasons belong to dead letters only, causes
// to lost work only.
func tallyTable(w *page, s *monitor.LedgerStats, by string, tallies []monitor.LedgerTally) {
	type tally = monitor.LedgerTally
	none := map[string]string{"reason": "nothing died", "cause": "no work was lost"}[by]
	title := strings.ToUpper(by)
	if by == "hour" {
		title = strings.ToUpper(s.Unit)
	}
	titles := title + map[string]string{
		"reason": ", LETTERS, OPEN, NEWEST, ~DECIDED", "cause": ", LOST, MEAN AGE, NEWEST, ~OUTCOME",
	}[by]
	if none == "" {
		titles += ", LETTERS, OPEN, LOST, MEAN AGE, NEWEST, ~DECIDED, ~OUTCOME"
	}
	none = cmp.Or(none, "nothing died and no work was lost") + " in the last " + age(s.Window)
	table(w, none, tallies, titles, func(t *tally) []any {
		mean := "-"
		if t.MeanAge != nil {
			mean = age(*t.MeanAge)
		}
		name, newest := phrase.CutMiddle(clean(cmp.Or(t.WorkerName, t.Name)), 22), age(s.At.Sub(t.Newest))
		decided, outcome := parts(t.Decisions, monitor.DecisionOpen), parts(t.Outcomes, "")
		switch by {
		case "reason":
			return []any{name, t.DeadLetters, t.Open, newest, decided}
		case "cause":
			return []any{name, t.Lost, mean, newest, outcome}
		}
		return []any{name, t.DeadLetters, t.Open, t.Lost, mean, newest, decided, outcome}
	})
}

// parts writes counts by name, the largest first.
func parts(counts map[string]int64, without string) string {
	names := slices.SortedFunc(maps.Keys(counts),
		func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	var out []string
	for _, name := range names {
		if name != without {
			out = append(out, name+" "+strconv.FormatInt(counts[name], 10))
		}
	}
	return dash(strings.Join(out, ", "))
}
