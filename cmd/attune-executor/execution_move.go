package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/triage"
)

// moveOptions are the flags of `execution front` and `execution lane`.
type moveOptions struct {
	kind   act.Kind
	to     string // the lane
	undo   int64
	reason string
	flags  planFlags
	chosen selection
}

func newExecutionFrontCommand(a *app) *cobra.Command {
	return newMoveCommand(a, &cobra.Command{
		Use:   "front ID... | front --param NAME=VALUE...",
		Short: "Let waiting executions start before the others of their lane",
		Long: "Move waiting executions before all others of their lane, in their present order. Executions that were\n" +
			"admitted are not touched. Other queues lose nothing: at a shared limit the queue keeps its turns.",
		Example: "  attune-executor execution front 42 43 --reason 'acme waits'\n" +
			"  attune-executor execution front --action shop.bill -p tenant=acme --dry-run\n" +
			"  attune-executor execution front --undo 17",
	}, &moveOptions{kind: act.FrontExecution})
}

func newExecutionLaneCommand(a *app) *cobra.Command {
	options := &moveOptions{kind: act.LaneExecution}
	cmd := newMoveCommand(a, &cobra.Command{
		Use:   "lane --to LANE ID... | lane --to LANE --param NAME=VALUE...",
		Short: "Move waiting executions to another lane of their queues",
		Long: "Give waiting executions another priority. In its new lane each has the place of its arrival. Executions\n" +
			"that were admitted are not touched.",
		Example: "  attune-executor execution lane --to high 42 43\n" +
			"  attune-executor execution lane --to low --action shop.bill -p tenant=acme --yes\n" +
			"  attune-executor execution lane --undo 17",
	}, options)
	cmd.Flags().StringVar(&options.to, "to", "", "the lane: high, normal or low")
	words(cmd, "to", "high", "normal", "low")
	return cmd
}

func newMoveCommand(a *app, cmd *cobra.Command, options *moveOptions) *cobra.Command {
	cmd.Long += "\n\nWithout ids the flags choose: all waiting executions that match, at most 10000 at once, of the newest\n" +
		"50000. The command asks first; --dry-run counts them."
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case options.undo == 0:
			return options.chosen.someExecutions(cmd, args)
		case len(args) > 0 || options.chosen.given() || options.to != "":
			return errors.New("--undo takes the number of an audit and chooses the executions itself")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := anExecution.ids(args)
		if err != nil {
			return err
		}
		request := act.Request{Kind: options.kind, Named: true, Values: map[string]string{act.FieldLane: options.to}}
		switch {
		case options.undo != 0:
			request.Kind, request.Target.ID = act.PutBackExecutions, options.undo
		case options.kind == act.LaneExecution:
			if _, err := triage.ParseLane(options.to); err != nil {
				return usageErrorf("--to takes a lane: high, normal or low")
			}
		}
		if options.flags.dryRun && !options.chosen.given() {
			return usageErrorf("--dry-run goes with flags that choose executions")
		}
		filter, err := options.chosen.read(lifecycle.StatusRequested)
		if err != nil {
			return err
		}
		how := acting{planFlags: options.flags, publishes: true, noun: "execution"}
		return a.withOperator(cmd, how, func(o *operator) error {
			if options.chosen.given() {
				if ids, err = o.choose(request.Kind, filter, how); err != nil || ids == nil {
					return err
				}
			}
			if options.undo == 0 {
				request.Targets = act.OnIDs(request.Kind, ids...).Targets
			}
			return o.act(request, options.reason, how)
		})
	}
	flags := cmd.Flags()
	flags.Int64Var(&options.undo, "undo", 0, "put back what the move with this audit moved, as far as it still waits")
	flags.StringVar(&options.reason, "reason", "", "the reason, for the audit")
	options.flags.add(flags, "show which executions the flags choose and do nothing",
		"do not ask about executions that the flags choose")
	options.chosen.flags(cmd)
	flags.Lookup("status").Hidden = true // only waiting ones are moved
	return cmd
}
