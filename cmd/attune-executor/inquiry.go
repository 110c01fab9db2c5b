package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
)

func newInquiryCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "inquiry",
		Aliases: []string{"inquiries"},
		Short:   "Look at questions to people, and answer them",
		Long: "Look at inquiries, the questions that workflows and actions ask people, and answer them. While a question is open\n" +
			"nothing runs and no slot is held; the workflow goes on from the answer, or when the time to answer is over.",
		Example: "  attune-executor inquiry list\n  attune-executor inquiry show 7\n  attune-executor inquiry respond 7 -p approved=true",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newInquiryListCommand(a), &cobra.Command{
		Use:     "show ID",
		Short:   "Show one inquiry: what is asked, by whom, what the response must look like, and what was answered",
		Example: "  attune-executor inquiry show 7\n  attune-executor inquiry show 7 -o json | jq .response_schema",
		Args:    oneArg("the id of an inquiry"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.showInquiry(cmd, args[0]) },
	}, newInquiryRespondCommand(a))
	return cmd
}

func newInquiryListCommand(a *app) *cobra.Command {
	filter, cursor, all, refused := monitor.InquiryFilter{}, "", false, false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the open inquiries, those that have waited for longest first",
		Long: "List the open inquiries, those that have waited for longest first; with --all the ended ones behind them, the newest\n" +
			"first. --refused lists the newest questions that could not be asked instead, and why.",
		Example: "  attune-executor inquiry list\n  attune-executor inquiry list --assigned-to ada --action 'deploy.*'\n" +
			"  attune-executor inquiry list --status timeout",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 1 {
				return usageErrorf("--limit must be at least 1")
			}
			if refused {
				if all || cursor != "" || len(filter.Statuses) > 0 || filter.Execution != 0 || filter.AssignedTo+filter.Action != "" {
					return usageErrorf("--refused goes with no other filter")
				}
				return a.listRefused(cmd)
			}
			if all && len(filter.Statuses) > 0 {
				return usageErrorf("--all and --status exclude each other")
			}
			if !all && len(filter.Statuses) == 0 {
				filter.Statuses = []string{monitor.InquiryPending}
			}
			if err := filter.Check(); err != nil {
				return usageErrorf("%w", err)
			}
			return a.listInquiries(cmd, filter, cursor)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "also those that have ended")
	flags.StringSliceVar(&filter.Statuses, "status", nil, "only these: "+strings.Join(monitor.InquiryStatuses, ", "))
	flags.BoolVar(&refused, "refused", false, "the newest questions that could not be asked, and why")
	flags.Int64Var(&filter.Execution, "execution", 0, "only what this execution asks, or the tasks of this workflow")
	flags.StringVar(&filter.AssignedTo, "assigned-to", "", "only what is for this identity, by login or id")
	flags.StringVar(&filter.Action, "action", "", "only what is asked by actions, or in workflows, whose ref matches; * stands for anything")
	flags.IntVar(&filter.Limit, "limit", 20, "how many to list")
	flags.StringVar(&cursor, "cursor", "", "go on where a list ended that gave this cursor")
	return cmd
}

func (a *app) listInquiries(cmd *cobra.Command, filter monitor.InquiryFilter, cursor string) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	page, err := c.monitor().Inquiries(cmd.Context(), filter, cursor)
	if errors.Is(err, monitor.ErrFilter) {
		return usageErrorf("%w", err)
	}
	if err != nil {
		return err
	}
	page.Faults = nil // --refused lists them
	return a.print(cmd, page, func(w io.Writer) error {
		if err := inquiryTable(w, page); err != nil {
			return err
		}
		switch {
		case page.Bounded:
			return row(w, "the search stopped at its bound; more may match: --cursor "+page.Next+" goes on")
		case page.Next != "":
			return row(w, "more: --cursor "+page.Next)
		}
		return nil
	})
}

// listRefused lists the newest questions that could not be asked.
func (a *app) listRefused(cmd *cobra.Command) error {
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	page, err := c.monitor().Inquiries(cmd.Context(), monitor.InquiryFilter{Limit: 1}, "")
	if err != nil {
		return err
	}
	view := struct {
		At     time.Time              `json:"at"`
		Faults []monitor.InquiryFault `json:"refused"`
	}{page.At, append([]monitor.InquiryFault{}, page.Faults...)}
	return a.print(cmd, view, func(w io.Writer) error {
		if len(view.Faults) == 0 {
			return row(w, "every question could be asked")
		}
		if err := row(w, "EXECUTION", "ACTION", "AGE", "WHY"); err != nil {
			return err
		}
		for _, fault := range view.Faults {
			if err := row(w, fault.Execution, fault.ActionRef, short(view.At.Sub(fault.At)), fault.Reason); err != nil {
				return err
			}
		}
		return nil
	})
}

func inquiryTable(w io.Writer, page *monitor.InquiryPage) error {
	if len(page.List) == 0 {
		plain := page.Filter.Execution == 0 && page.Filter.AssignedTo+page.Filter.Action == "" && onlyOpen(page)
		switch {
		case page.From != "":
			return row(w, "no more inquiries match")
		case plain:
			return row(w, "nothing waits for an answer")
		}
		return row(w, "no inquiry matches; "+countText(page.Open)+" open")
	}
	cells := [][]string{{"ID", "STATUS", "AGE", "LEFT", "FOR", "ASKED BY", "PROMPT"}}
	for i := range page.List {
		one := &page.List[i]
		cells = append(cells, []string{
			strconv.FormatInt(one.ID, 10), one.Status, age(one.Age), leftText(one), assigneeText(one), askedBy(one), one.Prompt,
		})
	}
	if onlyOpen(page) {
		for i := range cells {
			cells[i] = slices.Delete(cells[i], 1, 2)
		}
	}
	last := len(cells[0]) - 1
	for _, line := range fit(cells, last-1, last) {
		if err := row(w, line...); err != nil {
			return err
		}
	}
	return nil
}

// onlyOpen reports that the list is of open inquiries, so that nobody has to be told
// their status.
func onlyOpen(page *monitor.InquiryPage) bool {
	return slices.Equal(page.Filter.Statuses, []string{monitor.InquiryPending})
}

// leftText is for how long an inquiry can be answered.
func leftText(one *monitor.Inquiry) string {
	switch {
	case !one.Open():
		return "-"
	case one.Left == nil:
		return "no limit"
	case *one.Left == 0:
		return "over"
	}
	return age(*one.Left)
}

func assigneeText(one *monitor.Inquiry) string {
	switch {
	case one.AssignedTo == nil:
		return "anybody"
	case one.Assignee == "":
		return "identity " + strconv.FormatInt(*one.AssignedTo, 10)
	}
	return one.Assignee
}

// askedBy is the task and its workflow, or the action.
func askedBy(one *monitor.Inquiry) string {
	switch {
	case one.Task != "" && one.WorkflowRef != "":
		return one.Task + " of " + one.WorkflowRef
	case one.WorkflowRef != "":
		return one.ActionRef + " for " + one.WorkflowRef
	}
	return one.ActionRef
}

func inquiryID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usageErrorf("%q is not the id of an inquiry", text)
	}
	return id, nil
}

func noInquiry(id int64) error {
	return failedErrorf("there is no inquiry %d: `attune-executor inquiry list --all` shows those that there are", id)
}

func (a *app) showInquiry(cmd *cobra.Command, text string) error {
	id, err := inquiryID(text)
	if err != nil {
		return err
	}
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	d, err := c.monitor().Inquiry(cmd.Context(), id)
	if errors.Is(err, monitor.ErrNotFound) {
		return noInquiry(id)
	}
	if err != nil {
		return err
	}
	return a.print(cmd, d, func(w io.Writer) error { return inquiryLines(w, d) })
}

func inquiryLines(w io.Writer, d *monitor.InquiryDetail) error {
	lines := [][2]string{
		{"inquiry", strconv.FormatInt(d.ID, 10)},
		{"status", inquiryStatusText(d)},
		{"asked by", fmt.Sprintf("%s, execution %d (%s)", askedBy(&d.Inquiry), d.Execution, d.ExecutionStatus)},
	}
	add := func(name, value string) { lines = append(lines, [2]string{name, value}) }
	if d.Workflow != nil {
		add("workflow", fmt.Sprintf("%s, execution %d (%s)", d.WorkflowRef, *d.Workflow, d.WorkflowStatus))
	}
	add("for", assigneeText(&d.Inquiry))
	add("asked", agoText(d.Created, d.Reading.At))
	switch {
	case d.TimeoutAt == nil:
		add("until", "no limit")
	case d.Left != nil:
		add("until", fmt.Sprintf("%s, %s left", d.TimeoutAt.UTC().Format(time.RFC3339), short(*d.Left)))
	default:
		add("until", d.TimeoutAt.UTC().Format(time.RFC3339))
	}
	add("prompt", d.Prompt)
	for _, line := range lines {
		if err := row(w, line[0], line[1]); err != nil {
			return err
		}
	}
	return inquiryDocuments(w, d)
}

// inquiryDocuments prints what the response must look like and what was answered.
func inquiryDocuments(w io.Writer, d *monitor.InquiryDetail) error {
	if d.HasSchema {
		if _, err := fmt.Fprintf(w, "\nThe response must fit:\n%s\n", pretty(d.ResponseSchema)); err != nil {
			return err
		}
	}
	if d.Status == monitor.InquiryResponded {
		if _, err := fmt.Fprintf(w, "\nThe response:\n%s\n", pretty(d.Response)); err != nil {
			return err
		}
	}
	if d.Open() {
		_, err := fmt.Fprintf(w, "\n`attune-executor inquiry respond %d` answers it.\n", d.ID)
		return err
	}
	return nil
}

func inquiryStatusText(d *monitor.InquiryDetail) string {
	if d.RespondedAt == nil {
		return d.Status
	}
	return fmt.Sprintf("%s by %s, %s", d.Status, dash(d.Responder), agoText(*d.RespondedAt, d.Reading.At))
}
