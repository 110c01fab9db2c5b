package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/act"
	"github.com/attune-go/attune/core/phrase"
)

// actCommand is a command that is made from the declaration of an act.
type actCommand struct {
	app    *app
	cmd    *cobra.Command
	of     *act.Act
	asks   []*act.Act // acts that a flag asks for instead
	reason string
	plan   planFlags
	wait   waitFlags
	chosen selection
}

// addActs adds the commands of acts to their groups.
func (a *app) addActs(root *cobra.Command) {
	for _, of := range act.All() {
		for _, group := range root.Commands() {
			if of.Command.Group == group.Name() && !of.Command.Own {
				c := &actCommand{app: a, of: of, asks: of.Switches()}
				group.AddCommand(c.command())
			}
		}
	}
}

func (c *actCommand) command() *cobra.Command {
	of := &c.of.Command
	c.cmd = &cobra.Command{
		Use: of.Use, Aliases: of.Aliases, Short: of.Short, Long: of.Long, Example: of.Example,
		Args: c.args, RunE: c.run,
	}
	for i := range c.of.Fields {
		c.field(&c.of.Fields[i])
	}
	flags := c.cmd.Flags()
	for _, other := range c.asks {
		if other.Command.Number {
			flags.Int64(other.Command.Switch, 0, other.Command.SwitchHelp)
		} else {
			flags.Bool(other.Command.Switch, false, other.Command.SwitchHelp)
		}
	}
	text := func(to *string, name, help string) {
		if help != "" {
			flags.StringVar(to, name, "", help)
		}
	}
	text(&c.reason, "reason", of.Reason)
	text(&c.reason, "note", of.Note)
	if of.DryRun != "" {
		flags.BoolVar(&c.plan.dryRun, "dry-run", false, of.DryRun)
	}
	if yes := of.Yes + c.of.Insists; yes != "" {
		flags.BoolVar(&c.plan.yes, "yes", false, yes)
	}
	if of.Wait != "" {
		c.wait.add(flags, of.Wait)
	}
	switch {
	case len(of.Chooses) > 0:
		c.chosen.flags(c.cmd)
		flags.Lookup("status").Hidden = len(of.Chooses) == 1 // no other can be chosen
	case of.Within:
		c.chosen.paramFlags(c.cmd)
	}
	return c.cmd
}

// field adds the flag of a field.
func (c *actCommand) field(f *act.Field) {
	flags, value := c.cmd.Flags(), f.Value
	if f.Required {
		value = "" // that of the form is only proposed
	}
	switch {
	case f.Argument && f.Type == act.Number:
		c.cmd.SetFlagErrorFunc(negative(f))
	case f.Usage == "":
	case f.Type == act.Number:
		flags.Int64(f.Flag(), 0, f.Usage)
	case f.Type == act.Decimal:
		number, _ := strconv.ParseFloat(value, 64) // of a declaration
		flags.Float64(f.Flag(), number, f.Usage)
	case f.Type == act.Age:
		flags.Var(phrase.SpanFlag{To: new(time.Duration), Age: true}, f.Flag(), f.Usage)
	default:
		flags.String(f.Flag(), value, f.Usage)
		if len(f.Choices) > 0 {
			words(c.cmd, f.Flag(), f.Choices...)
		}
	}
}

// negative checks a negative number, which cobra takes for a flag, like other numbers.
func negative(f *act.Field) func(*cobra.Command, error) error {
	return func(_ *cobra.Command, err error) error {
		for text := range strings.FieldsSeq(err.Error()) {
			if number, parseErr := strconv.ParseInt(text, 10, 64); parseErr == nil && number < 0 {
				return usageErrorf("%w", f.Check(text))
			}
		}
		return err
	}
}

// asked is the act that the flags ask for, and the number that names its target.
func (c *actCommand) asked() (of *act.Act, id int64) {
	for _, other := range c.asks {
		flag := c.cmd.Flags().Lookup(other.Command.Switch)
		if flag.Value.String() != flag.DefValue {
			id, _ = strconv.ParseInt(flag.Value.String(), 10, 64) // 0 for a flag that is no number
			return other, id
		}
	}
	return c.of, 0
}

// rows are the kinds of rows that commands name by their ids.
func (c *actCommand) rows() kind {
	return map[string]kind{"execution": anExecution, "dead letter": aDeadLetter, "workflow": aWorkflow}[c.of.Kind.Of()]
}

func (c *actCommand) args(cmd *cobra.Command, args []string) error {
	command, want := &c.of.Command, 1
	of, id := c.asked()
	for i := range of.Fields {
		if of.Fields[i].Argument {
			want++
		}
	}
	switch command.Takes {
	case act.TakesIDs:
		switch {
		case id != 0 && (len(args) > 0 || c.chosen.given() || len(c.values(c.of, nil)) > 0):
			return fmt.Errorf("--%s takes %s and chooses the executions itself", of.Command.Switch, of.Command.Subject)
		case id != 0:
			return nil
		case len(command.Chooses) > 0:
			return c.chosen.someExecutions(cmd, args)
		}
		return some(c.rows())(cmd, args)
	case act.TakesID:
		what, _, _ := strings.Cut(c.rows().what, ",")
		return oneArg("the id of "+what)(cmd, args)
	case act.TakesRef:
		return oneArg(command.Subject)(cmd, args)
	case act.TakesQueue:
		switch {
		case len(args) == want && len(args) > 0:
			return nil
		case of != c.of:
			return fmt.Errorf("%s --%s takes %s and nothing else", cmd.Name(), of.Command.Switch, of.Command.Subject)
		case want > 1:
			return fmt.Errorf("%s needs %s", cmd.Name(), command.Subject)
		}
		return oneArg("the ref of an action, such as core.echo")(cmd, args)
	case act.TakesAction:
		if len(args) > 1 {
			return fmt.Errorf("%s takes at most one argument, the ref of an action, not %d", cmd.Name(), len(args))
		}
		return nil
	case act.TakesNothing:
	}
	return cobra.NoArgs(cmd, args)
}

// values are the values of the act's fields.
func (c *actCommand) values(of *act.Act, args []string) map[string]string {
	values := map[string]string{}
	for i := range of.Fields {
		f := &of.Fields[i]
		if flag := c.cmd.Flags().Lookup(f.Flag()); f.Usage != "" {
			if value := flag.Value.String(); value != flag.DefValue || f.Value != "" && !f.Required {
				values[f.Name] = value
			}
		} else if f.Argument && len(args) > 1 {
			values[f.Name] = args[1]
		}
	}
	return values
}

func (c *actCommand) run(cmd *cobra.Command, args []string) error {
	command := &c.of.Command
	of, id := c.asked()
	request := act.Request{
		Kind: of.Kind, Target: act.Target{ID: id}, Values: c.values(of, args), Reason: c.reason,
		Anyway: c.of.Insists != "" && c.plan.yes,
	}
	switch command.Takes {
	case act.TakesIDs, act.TakesID:
		ids, err := c.rows().ids(args)
		switch {
		case err != nil:
			return err
		case command.Takes == act.TakesID:
			request.Target.ID = ids[0]
		case id == 0:
			request.OnIDs(ids)
		}
	case act.TakesQueue, act.TakesAction, act.TakesRef:
		if len(args) > 0 {
			request.Target.Ref, request.Target.Action = args[0], args[0]
		}
	case act.TakesNothing:
	}
	if unfit := of.Check(request.Values); unfit != nil {
		return usageErrorf("%w", unfit)
	}
	if err := c.wait.check(); err != nil {
		return err
	}
	switch {
	case c.plan.dryRun && command.Counts && !c.chosen.given():
		return usageErrorf("--dry-run goes with flags that choose executions")
	case c.plan.dryRun && command.Takes == act.TakesID && (c.wait.wait || c.wait.timeout != 0):
		return usageErrorf("--dry-run waits for nothing: leave --wait and --timeout out")
	}
	filter, err := c.chosen.read(command.Chooses...)
	if err != nil {
		return err
	}
	how := acting{planFlags: c.plan, waitFlags: c.wait, Command: *command}
	if how.Noun == "" {
		how.Noun = c.of.Kind.Of()
	}
	return c.app.withOperator(cmd, how, func(o *operator) error {
		switch {
		case command.Within && c.chosen.given():
			if err := o.chooseWithin(&request, filter); err != nil {
				return err
			}
		case c.chosen.given():
			ids, err := o.choose(c.of.Kind, filter, how)
			if err != nil || ids == nil {
				return err
			}
			request.OnIDs(ids)
		}
		return o.act(request, how)
	})
}
