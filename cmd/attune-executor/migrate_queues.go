package main

import (
	"github.com/spf13/cobra"

	"github.com/attune-go/attune/migrations"
)

const withoutWorkQueues = "without-work-queues"

// withoutQueues adds the flag by which a person accepts that work queues wait.
func withoutQueues(cmd *cobra.Command, accept *bool) *cobra.Command {
	cmd.Flags().BoolVar(accept, withoutWorkQueues, false,
		"adopt a schema although this engine does not dispatch its work queues: their items wait")
	return cmd
}

// workQueuesWait is what adoption means for work queues.
const workQueuesWait = "this engine does not dispatch work queues: their items stay as they are, and wait for an engine that does"

// acceptWorkQueues says how to adopt a schema with work queues nevertheless.
const acceptWorkQueues = workQueuesWait + "; repeat it with --" + withoutWorkQueues + " to adopt the schema all the same"

// adoptionLines say what an installation has that goes differently after adoption.
func adoptionLines(w *page, queues []migrations.WorkQueue, ignored migrations.Ignored) {
	if line := ignored.String(); line != "" {
		w.row(line)
	}
	for _, q := range queues {
		w.row(q.String())
	}
	if len(queues) == 0 {
		return
	}
	w.row(workQueuesWait)
}
