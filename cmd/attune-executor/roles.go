package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/roles"
	"github.com/attune-go/attune/core/store"
)

func newRolesCommand(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "roles",
		Short: "Give each login only the privileges that its role needs",
		Long: "Give each login only the privileges that its role needs:\n" +
			"  engine    attune-executor serve\n" +
			"  worker    attune-executor worker\n" +
			"  operator  the dashboard, and the commands that act\n" +
			"  viewer    the dashboard, and the commands that read\n" +
			"Run `roles apply` again after each `migrate up`, and check a login with `doctor --as ROLE`.",
		Example: "  attune-executor roles print worker\n  attune-executor roles apply viewer --login grafana",
	},
		roleCommand(a, &cobra.Command{
			Use:   "print ROLE",
			Short: "Print the statements and the broker's commands for one login",
			Long: "Print the SQL statements that give a login the privileges of its role in database.schema, and take all\n" +
				"others there from it; and the commands that do the same for a user of the broker. Nothing is changed.",
			Example: "  attune-executor roles print engine\n" +
				"  attune-executor roles print worker --login worker_eu | psql -U postgres attune",
		}, false),
		roleCommand(a, &cobra.Command{
			Use:   "apply ROLE",
			Short: "Run the statements for one login, as the login of database.url",
			Long: "Run the statements that `roles print` prints, in one transaction. The login of database.url must own the\n" +
				"tables and may need CREATEROLE. A login that does not exist is created without a password. The broker is\n" +
				"not changed: run the printed rabbitmqctl commands.",
			Example: "  attune-executor roles apply operator\n  psql attune -c '\\password attune_operator'",
		}, true),
	)
}

func roleCommand(a *app, cmd *cobra.Command, apply bool) *cobra.Command {
	var login string
	cmd.Args = cobra.ExactArgs(1)
	for _, role := range roles.All {
		cmd.ValidArgs = append(cmd.ValidArgs, string(role))
	}
	cmd.RunE = a.connected(func(c *client, args []string) error {
		role, err := roles.Parse(args[0])
		if err != nil {
			return usageErrorf("%w", err)
		}
		return c.role(role, cmp.Or(login, "attune_"+args[0]), apply)
	})
	cmd.Flags().StringVar(&login, "login", "", "the login's name in the database and on the broker (default attune_ROLE)")
	return cmd
}

// roleView is the output of -o json.
type roleView struct {
	Role     roles.Role   `json:"role"`
	Login    string       `json:"login"`
	Schema   string       `json:"schema"`
	Applied  bool         `json:"applied"`
	SQL      []string     `json:"sql"`
	Broker   roles.Broker `json:"broker"`
	Commands []string     `json:"commands"`
}

func (c *client) role(role roles.Role, login string, apply bool) error {
	ctx, schema := c.cmd.Context(), c.cfg.Database.Schema
	vhost, err := broker.VHostOf(c.cfg.MessageQueue.URL)
	if err != nil {
		return usageErrorf("%w", err)
	}
	v := roleView{Role: role, Login: login, Schema: schema, Applied: apply, Broker: roles.BrokerOf(role)}
	v.Commands = v.Broker.Commands(vhost, login)
	if v.SQL, err = roles.Statements(ctx, c.store.Pool(), role, schema, login); err != nil {
		if errors.Is(err, roles.ErrOwner) {
			return refusedErrorf("%w: name another login with --login", err)
		}
		return failedErrorf("%w", err)
	}
	if apply {
		err := c.store.Tx(ctx, "apply role "+string(role), func(ctx context.Context, tx *store.Tx) error {
			for _, sql := range v.SQL {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return fmt.Errorf("%s: %w", sql, err)
				}
			}
			return nil
		})
		if _, denied := store.Denied(err); denied {
			return refusedErrorf("the login %s may not grant this: run it as the owner of the tables, or pipe "+
				"`roles print` into psql as a superuser", c.store.Login())
		} else if err != nil {
			return err
		}
	}
	return c.show(v, v.text)
}

func (v *roleView) text(w *page) {
	if v.Applied {
		w.rowf("%s has the privileges of the role %s in schema %s. On the broker, run:", v.Login, v.Role, v.Schema)
		for _, command := range v.Commands {
			w.row("  " + command)
		}
		return
	}
	w.rowf("-- The login %s with the role %s in schema %s.", v.Login, v.Role, v.Schema)
	w.row("BEGIN;")
	for _, sql := range v.SQL {
		w.row(sql + ";")
	}
	w.row("COMMIT;")
	w.row("-- On the broker:")
	for _, command := range v.Commands {
		w.row("--   " + command)
	}
}
