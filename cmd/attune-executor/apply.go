package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/config"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
)

func newApplyCommand(a *app) *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{
		Use:   "apply PATH...",
		Short: "Make the policies those of files",
		Long: "Make the policies those of YAML files, all or nothing: a mistake in any file, and nothing is changed. A folder is\n" +
			"read with all folders below it; of a pack, the folder policies. The path - is the standard input. Policies that no\n" +
			"file has stay as they are.",
		Example: "  attune-executor apply policies/ --dry-run\n  attune-executor apply deploy/ limits.yaml\n  attune-executor apply - < limits.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs files or folders, such as policies/", cmd.Name())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.apply(cmd, args, dryRun) },
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would change and write nothing")
	return cmd
}

// applied is what `apply` prints.
type applied struct {
	DryRun     bool            `json:"dry_run"`
	Policies   []appliedPolicy `json:"policies"`
	New        int             `json:"new"`
	Changed    int             `json:"changed"`
	Unchanged  int             `json:"unchanged"`
	Nudged     int             `json:"nudged_queues"` // whose first waiter looks again at once
	NotApplied []string        `json:"not_applied"`   // files that describe something else
	Mistakes   []fileMistake   `json:"mistakes"`
	Warnings   []string        `json:"warnings"` // of what was applied
}

type appliedPolicy struct {
	Ref        string                `json:"ref"`
	Change     catalog.How           `json:"change"`
	Fields     []catalog.FieldChange `json:"fields"`
	File       string                `json:"file"`
	Line       int                   `json:"line"`
	Superseded string                `json:"superseded_by,omitempty"`
}

type fileMistake struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
}

func (a *app) apply(cmd *cobra.Command, paths []string, dryRun bool) error {
	files, err := catalog.Read(paths, cmd.InOrStdin())
	switch {
	case errors.Is(err, catalog.ErrNoFiles):
		return usageErrorf("%w: name a file, or a folder that holds policies", err)
	case err != nil:
		return &exitError{exitUsage, err}
	}
	a.noteSkipped(files.Skipped)
	c, err := a.connect(cmd)
	if err != nil {
		if len(files.Mistakes) > 0 {
			a.notef("the files were not compared with the database: %s", oneLine(err.Error()))
			return a.refuseFiles(cmd, files, dryRun, files.Mistakes)
		}
		return err
	}
	defer c.store.Close()
	var committed committedMessages
	result, err := catalog.New(c.store, &committed).Apply(cmd.Context(), catalog.Request{
		Policies: files.Policies, Mistakes: files.Mistakes, DryRun: dryRun,
		Actor: operator(), Source: "attune-executor",
	})
	if wrong, ok := errors.AsType[*pack.MistakesError](err); ok {
		return a.refuseFiles(cmd, files, dryRun, wrong.Mistakes)
	}
	if err != nil {
		return applyError(err)
	}
	c.publish(cmd.Context(), a, &committed)
	return a.printApplied(cmd, files, dryRun, result)
}

// applyError says what to do where it is not obvious.
func applyError(err error) error {
	if store.ClassOf(err) == store.ClassUnknown {
		return failedErrorf("%w: whether it was applied is unknown, apply again: what is there already does not change", err)
	}
	return err
}

// refuseFiles reports every mistake, as data too if that was asked for.
func (a *app) refuseFiles(cmd *cobra.Command, files catalog.Files, dryRun bool, mistakes []pack.Mistake) error {
	out := applied{DryRun: dryRun, Policies: []appliedPolicy{}, Warnings: []string{}, NotApplied: append([]string{}, files.Skipped...)}
	for _, m := range mistakes {
		a.notef("%s", clean(m.String()))
		out.Mistakes = append(out.Mistakes, fileMistake{m.Place.File, m.Place.Line, m.Place.Column, m.Text})
	}
	if err := a.print(cmd, out, func(io.Writer) error { return nil }); err != nil {
		return err
	}
	return usageErrorf("%s: nothing was applied", count(len(mistakes), "mistake"))
}

func (a *app) printApplied(cmd *cobra.Command, files catalog.Files, dryRun bool, result catalog.Result) error {
	out := applied{
		DryRun: dryRun, Policies: []appliedPolicy{}, Mistakes: []fileMistake{}, Warnings: []string{},
		NotApplied: append([]string{}, files.Skipped...),
		Nudged:     result.Nudged, New: result.Count(catalog.Added), Changed: result.Count(catalog.Changed), Unchanged: result.Count(catalog.Unchanged),
	}
	for _, change := range result.Changes {
		out.Policies = append(out.Policies, appliedPolicy{
			change.Ref, change.How, change.Fields, change.Place.File, change.Place.Line, change.Superseded,
		})
		if change.Superseded != "" {
			out.Warnings = append(out.Warnings, fmt.Sprintf("%s has no effect: %s is a newer concurrency policy of the same scope",
				change.Ref, change.Superseded))
		}
	}
	err := a.print(cmd, out, func(w io.Writer) error {
		for _, policy := range out.Policies {
			if err := row(w, policy.line()); err != nil {
				return err
			}
		}
		summary := fmt.Sprintf("%d new, %d changed, %d unchanged", out.New, out.Changed, out.Unchanged)
		if dryRun {
			summary += "; a dry run: nothing was written"
		}
		return row(w, summary)
	})
	for _, warning := range out.Warnings {
		a.notef("%s", warning)
	}
	return err
}

// line is one policy of the difference.
func (p appliedPolicy) line() string {
	switch p.Change {
	case catalog.Added:
		return "+ " + p.Ref + " (new)"
	case catalog.Unchanged:
		return "= " + p.Ref + " unchanged"
	default:
	}
	changes := make([]string, len(p.Fields))
	for i, field := range p.Fields {
		changes[i] = field.Key + " " + brief(field.Old) + " → " + brief(field.New)
	}
	return "~ " + p.Ref + " " + strings.Join(changes, ", ")
}

// maxBrief bounds a value in the difference; -o json has all of it.
const maxBrief = 60

func brief(value string) string {
	if value == "" {
		return "none"
	}
	if runes := []rune(value); len(runes) > maxBrief {
		return string(runes[:maxBrief]) + "…"
	}
	return value
}

// noteSkipped names the files that describe something else, folder by folder.
func (a *app) noteSkipped(names []string) {
	if len(names) == 0 {
		return
	}
	var folders []string
	inFolder := map[string][]string{}
	for _, name := range names {
		folder := filepath.Dir(name)
		if !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		inFolder[folder] = append(inFolder[folder], name)
	}
	shown := make([]string, len(folders))
	for i, folder := range folders {
		shown[i] = inFolder[folder][0]
		if n := len(inFolder[folder]); n > 1 {
			shown[i] = fmt.Sprintf("%s (%d files)", folder+string(filepath.Separator), n)
		}
	}
	a.notef("not applied, as this version applies policies only: %s", clean(strings.Join(shown, ", ")))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// committedMessages keeps what was committed until there is a broker to send
// it to: most applications have nothing to send.
type committedMessages struct {
	row      int64
	messages []outbox.Message
}

// Published keeps the messages of an outbox row.
func (m *committedMessages) Published(row int64, messages []outbox.Message) {
	m.row, m.messages = row, messages
}

// publish sends what was committed. Where it cannot be sent a running engine
// does it, so that is no failure.
func (c *client) publish(ctx context.Context, a *app, committed *committedMessages) {
	if len(committed.messages) == 0 {
		return
	}
	relay, stop, err := c.relay(ctx, "attune-executor apply", nil)
	if err == nil {
		defer stop()
		relay.Published(committed.row, committed.messages)
		err = awaitPublished(ctx, submit.New(c.store, nil), committed.row)
	}
	if err != nil && ctx.Err() == nil {
		a.notef("the broker %s does not answer: the executions that wait will be told by a running engine",
			config.MaskURL(c.cfg.MessageQueue.URL))
	}
}
