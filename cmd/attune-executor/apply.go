package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/catalog"
	"github.com/attune-go/attune/core/outbox"
	"github.com/attune-go/attune/core/pack"
	"github.com/attune-go/attune/core/phrase"
	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/triage"
)

type applyOptions struct {
	planFlags
	prune, strict bool
}

func newApplyCommand(a *app) *cobra.Command {
	var options applyOptions
	cmd := &cobra.Command{
		Use:   "apply PATH...",
		Short: "Write packs and policies from files to the database",
		Long: "Write packs, with their actions, workflows, triggers, rules and policies, from YAML files to the\n" +
			"database. If one file has a mistake, nothing is written. A folder is read with its subfolders; a\n" +
			"folder with a pack.yaml is a pack. The path - is the standard input. Items without a file stay as they\n" +
			"are; --prune deletes the ones that a pack no longer has.",
		Example: "  attune-executor apply packs/deploy --dry-run\n  attune-executor apply packs --dry-run --strict\n" +
			"  attune-executor apply packs/deploy --prune\n" +
			"  attune-executor apply packs/deploy/rules/on_push.yaml limits.yaml\n" +
			"  attune-executor apply - < limits.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs files or folders, such as packs/deploy", cmd.Name())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.apply(cmd, args, options) },
	}
	flags := cmd.Flags()
	options.add(flags, "show what would change and write nothing", "do not ask before deleting")
	flags.BoolVar(&options.prune, "prune", false,
		"delete rules, triggers, actions, workflows and policies that the folder of a pack no longer has")
	flags.BoolVar(&options.strict, "strict", false, "treat warnings as mistakes: write nothing, exit code 2")
	return cmd
}

// applied is the output of `apply`.
type applied struct {
	DryRun     bool          `json:"dry_run"`
	Items      []appliedItem `json:"items"` // but for policies
	Policies   []appliedItem `json:"policies"`
	New        int           `json:"new"`
	Changed    int           `json:"changed"`
	Unchanged  int           `json:"unchanged"`
	Deleted    int           `json:"deleted"`
	Kept       []string      `json:"kept,omitempty"` // undescribed policies of pruned packs, which stay in force
	Nudged     int           `json:"nudged_queues"`  // which are checked again at once
	NotApplied []string      `json:"not_applied"`    // files that describe something else
	Mistakes   []fileMistake `json:"mistakes"`
	Warnings   []string      `json:"warnings"` // about applied items
}

type appliedItem struct {
	Kind       pack.Kind             `json:"kind"`
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

func (a *app) apply(cmd *cobra.Command, paths []string, options applyOptions) error {
	files, err := catalog.Read(paths, cmd.InOrStdin())
	switch {
	case errors.Is(err, catalog.ErrNoFiles):
		return usageErrorf("%w: name a file, or a folder with a pack or policies", err)
	case err != nil:
		return &exitError{exitUsage, err}
	}
	a.noteSkipped(files.Skipped)
	if options.strict {
		files.Mistakes, files.Warnings = pack.Sort(slices.Concat(files.Mistakes, files.Warnings)), nil
	}
	c, err := a.connect(cmd)
	if err != nil {
		if len(files.Mistakes) > 0 {
			a.notef("the files were not compared with the database: %s", oneLine(err.Error()))
			return a.refuseFiles(cmd, files, options, files.Mistakes)
		}
		return err
	}
	defer c.store.Close()
	var committed committedMessages
	catalogue := catalog.New(c.store, &committed)
	request := catalog.Request{
		Set: files.Set, Mistakes: files.Mistakes, DryRun: options.dryRun,
		Prune:  options.prune,
		Strict: options.strict, Actor: triage.LocalActor(), Source: "attune-executor",
	}
	if options.prune && !options.dryRun {
		if request.PruneOnly, err = c.confirmPrune(catalogue, request, options.yes); err != nil {
			return a.applyError(cmd, files, options, err)
		}
	}
	result, err := catalogue.Apply(cmd.Context(), request)
	if err != nil {
		return a.applyError(cmd, files, options, err)
	}
	c.publish(cmd.Context(), &committed)
	return a.printApplied(cmd, files, options, result)
}

// confirmPrune shows the items that would be deleted and asks for their number.
func (c *client) confirmPrune(catalogue *catalog.Catalog, request catalog.Request, yes bool) ([]catalog.Name, error) {
	request.DryRun = true
	result, err := catalogue.Apply(c.cmd.Context(), request)
	if err != nil {
		return nil, err
	}
	doomed := []catalog.Name{}
	var names []string
	for _, change := range result.Changes {
		if change.How == catalog.Deleted {
			doomed = append(doomed, catalog.Name{Kind: change.Kind, Ref: change.Ref})
			names = append(names, string(change.Kind)+" "+change.Ref)
		}
	}
	if len(doomed) == 0 {
		return doomed, nil
	}
	what, list := count(len(doomed), "item"), clean(strings.Join(names, ", "))
	return doomed, c.confirm(planFlags{yes: yes}, &question{
		unasked: fmt.Sprintf("%s would be deleted (%s): --yes deletes, --dry-run shows the difference", what, list),
		text:    fmt.Sprintf("delete %s (%s)? type how many: ", what, list), want: strconv.Itoa(len(doomed)),
		nothing: "nothing was applied",
	})
}

func (a *app) applyError(cmd *cobra.Command, files catalog.Files, options applyOptions, err error) error {
	if wrong, ok := errors.AsType[*pack.MistakesError](err); ok {
		return a.refuseFiles(cmd, files, options, wrong.Mistakes)
	}
	if busy, ok := errors.AsType[*catalog.BusyError](err); ok {
		return refusedErrorf("%w: nothing was applied; wait for them, or cancel them", busy)
	}
	if store.ClassOf(err) == store.ClassUnknown {
		return failedErrorf("%w: whether it was applied is unknown: apply it again, which is safe", err)
	}
	return err
}

// refuseFiles reports every mistake, also as data.
func (a *app) refuseFiles(cmd *cobra.Command, files catalog.Files, options applyOptions,
	mistakes []pack.Mistake,
) error {
	out := newApplied(files, options)
	for _, warning := range files.Warnings {
		out.Warnings = append(out.Warnings, warning.String())
		a.notef("warning: %s", clean(warning.String()))
	}
	for _, m := range mistakes {
		a.notef("%s", clean(m.String()))
		out.Mistakes = append(out.Mistakes, fileMistake{m.Place.File, m.Place.Line, m.Place.Column, m.Text})
	}
	if err := a.write(cmd, out, func(*page) {}); err != nil {
		return err
	}
	return usageErrorf("%s: nothing was applied", count(len(mistakes), "mistake"))
}

func newApplied(files catalog.Files, options applyOptions) applied {
	return applied{
		DryRun: options.dryRun, Items: []appliedItem{}, Policies: []appliedItem{}, Mistakes: []fileMistake{},
		Warnings:   []string{},
		NotApplied: append([]string{}, files.Skipped...),
	}
}

func (a *app) printApplied(cmd *cobra.Command, files catalog.Files, options applyOptions, result catalog.Result) error {
	out := newApplied(files, options)
	out.Nudged, out.Kept = result.Nudged, result.Kept
	out.New, out.Changed = result.Count(catalog.Added), result.Count(catalog.Changed)
	out.Unchanged, out.Deleted = result.Count(catalog.Unchanged), result.Count(catalog.Deleted)
	for _, warning := range slices.Concat(files.Warnings, result.Warnings) {
		out.Warnings = append(out.Warnings, "warning: "+warning.String())
	}
	for _, change := range result.Changes {
		one := appliedItem{
			change.Kind, change.Ref, change.How, change.Fields, change.Place.File, change.Place.Line, change.Superseded,
		}
		if change.Kind == pack.KindPolicy {
			out.Policies = append(out.Policies, one)
		} else {
			out.Items = append(out.Items, one)
		}
		if change.Superseded != "" {
			out.Warnings = append(out.Warnings, change.NoEffect())
		}
	}
	err := a.write(cmd, out, out.table)
	for _, warning := range out.Warnings {
		a.notef("%s", clean(warning))
	}
	for _, change := range result.Changes {
		if text := change.Paced(); text != "" {
			a.notef("%s", clean(text))
		}
	}
	for _, ref := range out.Kept {
		a.notef("policy %s stays in force: no file describes it, and it was not read from the folder of the pack; "+
			"`attune-executor policy delete %s` deletes it", clean(ref), clean(ref))
	}
	return err
}

// table shows the changes, and counts the unchanged items.
func (out applied) table(w *page) {
	for _, one := range slices.Concat(out.Items, out.Policies) {
		if one.Change == catalog.Unchanged {
			continue
		}
		w.row(clean(one.line()))
	}
	summary := fmt.Sprintf("%d new, %d changed, %d unchanged", out.New, out.Changed, out.Unchanged)
	if out.Deleted > 0 {
		summary += fmt.Sprintf(", %d deleted", out.Deleted)
	}
	if out.DryRun {
		summary += "; a dry run: nothing was written"
	}
	w.row(summary)
}

func (p appliedItem) line() string {
	name := string(p.Kind) + " " + p.Ref
	switch p.Change {
	case catalog.Added:
		return "+ " + name + " (new)"
	case catalog.Deleted:
		return "- " + name + " (deleted)"
	default:
	}
	changes := make([]string, len(p.Fields))
	for i, field := range p.Fields {
		changes[i] = field.Key + " " + brief(field.Old) + " → " + brief(field.New)
	}
	return "~ " + name + " " + strings.Join(changes, ", ")
}

// maxBrief bounds a value in the difference; -o json has the whole value.
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

// noteSkipped names the files that describe something else, by folder.
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
			shown[i] = folder + string(filepath.Separator) + " (" + phrase.Plural(n, "file", "files") + ")"
		}
	}
	a.notef("not applied, because they describe no item of a pack and no policy: %s", clean(strings.Join(shown, ", ")))
}

// committedMessages keeps committed messages until a publisher exists: most runs of `apply` have
// none.
type committedMessages struct {
	rows     []int64
	messages [][]outbox.Message
}

// Published keeps the messages of an outbox row.
func (m *committedMessages) Published(row int64, messages []outbox.Message) {
	m.rows, m.messages = append(m.rows, row), append(m.messages, messages)
}

// publish sends committed messages. If it cannot, a running engine does.
func (c *client) publish(ctx context.Context, committed *committedMessages) {
	if len(committed.rows) == 0 {
		return
	}
	p, err := c.openPublisher(ctx, "attune-executor apply")
	if err == nil {
		defer p.close()
		for i, row := range committed.rows {
			p.relay.Published(row, committed.messages[i])
		}
		err = c.awaitPublished(ctx, committed.rows...)
	}
	if err != nil && ctx.Err() == nil {
		trouble := broker.Trouble(broker.ErrNotConnected)
		if p != nil {
			trouble = p.link.Trouble()
		}
		c.notef("a running engine will publish the messages about the changes: %s", awayBroker(c.cfg, trouble))
	}
}
