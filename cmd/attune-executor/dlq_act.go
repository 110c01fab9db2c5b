package main

import (
	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/triage"
)

func newDLQRequeueCommand(a *app) *cobra.Command {
	reason, yes := "", false
	cmd := &cobra.Command{
		Use:   "requeue ID...",
		Short: "Send dead letters again, or repeat their executions",
		Long: "Try dead letters again, each once. A dispatch to a worker is never sent again, because it could\n" +
			"start the execution twice: its execution is repeated as a new one after it has ended. Every other\n" +
			"message goes to its destination again. A useless requeue is refused with the reason; --yes does it\n" +
			"anyway if it is possible.",
		Example: "  attune-executor dlq requeue 12 --reason 'the worker is back'\n" +
			"  attune-executor dlq requeue 12 13 14 -o json",
		Args: some(aDeadLetter),
		RunE: a.onIDs(aDeadLetter, acting{
			publishes: true, ledger: true, noun: "dead letter", done: "requeued", field: "done",
		}, func(ids []int64) (act.Request, string) {
			request := act.OnIDs(act.RequeueDeadLetter, ids...)
			request.Anyway = yes
			return request, reason
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the audit")
	cmd.Flags().BoolVar(&yes, "yes", false, "also useless requeues")
	return cmd
}

func newDLQDiscardCommand(a *app) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:     "discard ID...",
		Short:   "Discard dead letters: nothing is done about them",
		Long:    "Discard waiting dead letters: nothing is done about them. The rows keep everything.",
		Example: "  attune-executor dlq discard 12 --reason 'a test of ours'",
		Args:    some(aDeadLetter),
		RunE: a.onIDs(aDeadLetter, acting{noun: "dead letter", done: "discarded", field: "done"},
			func(ids []int64) (act.Request, string) { return act.OnIDs(act.DiscardDeadLetter, ids...), reason }),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the audit")
	return cmd
}

func newDLQDiscardAllCommand(a *app) *cobra.Command {
	filter, note, plan := monitor.DeadLetterFilter{}, "", planFlags{}
	cmd := &cobra.Command{
		Use: "discard-all", Aliases: []string{"purge"},
		Short: "Discard all waiting dead letters that match",
		Long: "Discard the dead letters that wait when the command begins and match, at most 10000 at once; without\n" +
			"a filter all of them. Decided ones stay as they are, later ones wait, and the rows keep everything\n" +
			"until they are pruned. If you interrupt it, run the same command again.",
		Example: "  attune-executor dlq discard-all --type EventCreated --older-than 7d --dry-run\n" +
			"  attune-executor dlq discard-all --reason rejected --note 'tests of last week' --yes",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := filter.Check(); err != nil {
				return usageErrorf("%w", err)
			}
			request := triage.DiscardRequest{
				Reason: filter.Reason, Action: filter.Action, Worker: filter.Worker, Type: filter.Type,
				Execution: filter.Execution, MaxAge: filter.MaxAge, MinAge: filter.MinAge, Note: note,
			}
			return a.act(cmd, acting{planFlags: plan, asks: true, noun: "dead letter"},
				act.Request{Kind: act.DiscardAllDeadLetters, Input: request}, note)
		},
	}
	deadLetterFlags(cmd.Flags(), &filter)
	cmd.Flags().StringVar(&note, "note", "", "the reason, for the audit")
	plan.add(cmd.Flags(), "show what would be discarded and do nothing", "do not ask")
	return cmd
}

func newDLQTakeCommand(a *app) *cobra.Command {
	request, plan := triage.TakeRequest{}, planFlags{}
	cmd := &cobra.Command{
		Use:   "take",
		Short: "Take messages from the broker's queue of dead letters into the ledger",
		Long: "Take messages from the broker's queue of dead letters into the ledger, in their order, as rows that\n" +
			"wait for a person. An engine does that by itself while message_queue.rabbitmq.dead_letter.enabled is\n" +
			"true. It takes no more messages than are ready when it begins. Each row is committed before its\n" +
			"message is acknowledged, and no message is returned on purpose: filters do not choose messages, they\n" +
			"choose the rows that the last line names for the next command. If you interrupt it, run the same\n" +
			"command again.",
		Example: "  attune-executor dlq take --dry-run\n  attune-executor dlq take --first 100 --yes\n" +
			"  attune-executor dlq take --queue worker.7.executions --note 'worker 7 is gone'\n" +
			"  attune-executor dlq take --action 'core.http*' --yes",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case request.First < 0:
				return usageErrorf("--first must not be negative")
			case request.Rate <= 0:
				return usageErrorf("--rate must be above 0")
			}
			return a.act(cmd, acting{planFlags: plan, asks: true, connects: true, noun: "message"},
				act.Request{Kind: act.TakeDeadLetters, Input: request}, request.Note)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&request.Queue, "queue", message.QueueDeadLetter,
		"take from this queue, such as that of a lost worker")
	flags.IntVar(&request.First, "first", 0, "how many to take at most, 0 for all")
	flags.Float64Var(&request.Rate, "rate", triage.TakeRate, "how many to take in a second")
	flags.StringVar(&request.Match.Reason, "reason", "", "name the rows with this reason")
	flags.StringVar(&request.Match.Action, "action", "",
		"name the rows about actions whose ref matches; * stands for anything")
	flags.StringVar(&request.Match.Worker, "worker", "",
		"name the rows of messages to the worker with this id")
	flags.StringVar(&request.Match.Type, "type", "", "name the rows of this message type")
	flags.Int64Var(&request.Match.Execution, "execution", 0, "name the rows about this execution")
	flags.StringVar(&request.Note, "note", "", "the reason, for the audit")
	plan.add(flags, "show what would be taken and do nothing", "do not ask")
	return cmd
}
