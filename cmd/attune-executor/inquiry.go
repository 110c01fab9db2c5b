package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
)

func newInquiryCommand(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:     "inquiry",
		Aliases: []string{"inquiries"},
		Short:   "Look at questions to people, and answer them",
		Long: "Look at inquiries, the questions that workflows and actions ask people, and answer them. While a question is open\n" +
			"nothing runs and no slot is held; the workflow goes on from the answer, or when the time to answer is over.",
		Example: "  attune-executor inquiry list\n  attune-executor inquiry show 7\n  attune-executor inquiry respond 7 -p approved=true",
	}, newInquiryListCommand(a), showing(a, &cobra.Command{
		Use:     "show ID",
		Short:   "Show one inquiry: what is asked, by whom, what the response must look like, and what was answered",
		Example: "  attune-executor inquiry show 7\n  attune-executor inquiry show 7 -o json | jq .response_schema",
	}, anInquiry, reader((*monitor.Monitor).Inquiry), inquiryPage), newInquiryRespondCommand(a))
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
		RunE: func(cmd *cobra.Command, args []string) error {
			if refused {
				if all || cursor != "" || len(filter.Statuses) > 0 || filter.Execution != 0 || filter.AssignedTo+filter.Action != "" {
					return usageErrorf("--refused goes with no other filter")
				}
				return a.connected((*client).listRefused)(cmd, args)
			}
			if all && len(filter.Statuses) > 0 {
				return usageErrorf("--all and --status exclude each other")
			}
			if !all && len(filter.Statuses) == 0 {
				filter.Statuses = []string{monitor.InquiryPending}
			}
			if err := checkPage(filter.Limit, &filter); err != nil {
				return err
			}
			return a.connected(func(c *client, _ []string) error { return c.listInquiries(filter, cursor) })(cmd, args)
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

func (c *client) listInquiries(filter monitor.InquiryFilter, cursor string) error {
	list, err := c.monitor().Inquiries(c.cmd.Context(), filter, cursor)
	if errors.Is(err, monitor.ErrFilter) {
		return usageErrorf("%w", err)
	}
	if err != nil {
		return err
	}
	list.Faults = nil // --refused lists them
	return c.show(list, func(w *page) {
		inquiriesPage(w, list)
		switch {
		case list.Bounded:
			w.row("the search stopped at its bound; more may match: --cursor " + list.Next + " goes on")
		case list.Next != "":
			w.row("more: --cursor " + list.Next)
		}
	})
}

// listRefused lists the newest questions that could not be asked.
func (c *client) listRefused([]string) error {
	list, err := c.monitor().Inquiries(c.cmd.Context(), monitor.InquiryFilter{Limit: 1}, "")
	if err != nil {
		return err
	}
	view := struct {
		At     time.Time              `json:"at"`
		Faults []monitor.InquiryFault `json:"refused"`
	}{list.At, notNil(list.Faults)}
	return c.show(view, func(w *page) {
		table(w, "every question could be asked", view.Faults,
			col("EXECUTION", func(f *monitor.InquiryFault) any { return f.Execution }),
			col("ACTION", func(f *monitor.InquiryFault) any { return f.ActionRef }),
			col("AGE", func(f *monitor.InquiryFault) any { return short(view.At.Sub(f.At)) }),
			col("WHY", func(f *monitor.InquiryFault) any { return f.Reason }))
	})
}

func inquiriesPage(w *page, list *monitor.InquiryPage) {
	open := slices.Equal(list.Filter.Statuses, []string{monitor.InquiryPending}) // then the status says nothing
	none := "no inquiry matches; " + countText(list.Open) + " open"
	switch {
	case list.From != "":
		none = "no more inquiries match"
	case open && list.Filter.Execution == 0 && list.Filter.AssignedTo+list.Filter.Action == "":
		none = "nothing waits for an answer"
	}
	columns := []column[monitor.Inquiry]{
		col("ID", func(one *monitor.Inquiry) any { return one.ID }),
		col("STATUS", func(one *monitor.Inquiry) any { return one.Status }),
		col("AGE", func(one *monitor.Inquiry) any { return age(one.Age) }),
		col("LEFT", leftText),
		col("FOR", func(one *monitor.Inquiry) any { return assigneeText(one) }),
		flexible("ASKED BY", func(one *monitor.Inquiry) any { return askedBy(one) }),
		flexible("PROMPT", func(one *monitor.Inquiry) any { return one.Prompt }),
	}
	if open {
		columns = slices.Delete(columns, 1, 2)
	}
	table(w, none, list.List, columns...)
}

// leftText is for how long an inquiry can be answered.
func leftText(one *monitor.Inquiry) any {
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

func inquiryPage(w *page, d *monitor.InquiryDetail) {
	status, until := d.Status, cmp.Or(optTime(d.TimeoutAt), "no limit")
	if d.RespondedAt != nil {
		status = fmt.Sprintf("%s by %s, %s", d.Status, dash(d.Responder), agoText(*d.RespondedAt, d.Reading.At))
	}
	if d.TimeoutAt != nil && d.Left != nil {
		until += ", " + short(*d.Left) + " left"
	}
	w.row("inquiry", d.ID)
	w.row("status", status)
	w.row("asked by", fmt.Sprintf("%s, execution %d (%s)", askedBy(&d.Inquiry), d.Execution, d.ExecutionStatus))
	if d.Workflow != nil {
		w.row("workflow", fmt.Sprintf("%s, execution %d (%s)", d.WorkflowRef, *d.Workflow, d.WorkflowStatus))
	}
	w.row("for", assigneeText(&d.Inquiry))
	w.row("asked", agoText(d.Created, d.Reading.At))
	w.row("until", until)
	w.row("prompt", d.Prompt)
	if d.HasSchema {
		w.document("The response must fit:", d.ResponseSchema)
	}
	if d.Status == monitor.InquiryResponded {
		w.document("The response:", d.Response)
	}
	if d.Open() {
		w.text(fmt.Sprintf("\n`attune-executor inquiry respond %d` answers it.", d.ID))
	}
}
