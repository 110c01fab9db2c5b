package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/monitor"
)

func newExecutionWhyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "why ID",
		Short: "Say why an execution waits, for whom, and until when",
		Long: "Says in sentences why an execution waits: its place, the limit and who set it, who holds the slots, what else\n" +
			"keeps it, and when it will probably start. Of one that does not wait it says what it does instead.",
		Example: "  attune-executor execution why 42\n  attune-executor execution why 42 -o json",
		Args:    oneArg("the id of an execution"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.whyExecution(cmd, args[0]) },
	}
}

func (a *app) whyExecution(cmd *cobra.Command, text string) error {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return usageErrorf("%q is not the id of an execution", text)
	}
	c, err := a.connect(cmd)
	if err != nil {
		return err
	}
	defer c.store.Close()
	why, err := c.monitor().Why(cmd.Context(), id)
	if errors.Is(err, monitor.ErrNotFound) {
		return failedErrorf("there is no execution %d: `attune-executor execution list` shows the newest", id)
	}
	if err != nil {
		return err
	}
	return a.print(cmd, why, func(w io.Writer) error { return sentences(w, why.Lines) })
}

// sentences writes lines of text from the database, stripped of what could
// steer the terminal.
func sentences(w io.Writer, lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, clean(line)); err != nil {
			return err
		}
	}
	return nil
}
