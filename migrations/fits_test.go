package migrations_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
	"github.com/attune-go/attune/migrations"
)

// A program serves the schema of its version and every newer one that does not need a newer program.
func TestAProgramFitsItsSchemaAndNewerOnesThatKeepIt(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	for _, origin := range []migrations.Origin{migrations.OriginOwn, migrations.OriginAdopted} {
		t.Run(string(origin), func(t *testing.T) {
			t.Parallel()
			opts := migrations.Options{URL: testkit.EmptyDatabase(t), Schema: "attune"}
			conn := connect(t, opts)
			refuses := func(text string) {
				t.Helper()
				_, err := migrations.Fits(ctx, conn, opts.Schema)
				var unfit *migrations.UnfitError
				require.ErrorAs(t, err, &unfit)
				require.Regexp(t, text, unfit.Error())
			}
			refuses(`^schema attune is at version 0 of \d+: run attune-executor migrate up$`)
			if origin == migrations.OriginAdopted {
				require.NoError(t, installation.Build(ctx, conn, opts.Schema, installation.Newest))
				refuses("^schema attune belongs to an installation that is not adopted: run attune-executor migrate check")
			}
			up, err := migrations.Up(ctx, opts)
			require.NoError(t, err)
			require.Equal(t, origin, up.Origin)
			fits := func(version int64) {
				t.Helper()
				at, err := migrations.Fits(ctx, conn, opts.Schema)
				require.NoError(t, err)
				require.Equal(t, version, at)
			}
			fits(up.Version)

			exec(t, conn, "DELETE FROM attune_schema_version WHERE version_id = $1", up.Version)
			refuses(`^schema attune is at version \d+ of \d+: run attune-executor migrate up$`)
			exec(t, conn, "INSERT INTO attune_schema_version (version_id, is_applied) VALUES ($1, true), (9090, true)", up.Version)
			fits(9090)
			exec(t, conn, "INSERT INTO attune_schema_needs VALUES (9090, $1, '0.99.0')", up.Version)
			fits(9090)
			exec(t, conn, "UPDATE attune_schema_needs SET least = 9080 WHERE version = 9090")
			refuses(`^schema attune is at version 9090 and needs a program of at least 0.99.0, which knows version 9080; ` +
				`this one knows \d+: upgrade this program$`)
			for _, change := range []func() error{
				func() error { _, err := migrations.Up(ctx, opts); return err },
				func() error { _, err := migrations.Down(ctx, opts, 0); return err },
			} {
				var unfit *migrations.UnfitError
				require.ErrorAs(t, change(), &unfit)
			}
			exec(t, conn, "DELETE FROM attune_schema_version WHERE version_id = 106")
			exec(t, conn, "DELETE FROM attune_schema_needs WHERE version = 9090")
			refuses("^schema attune is at version 9090, but lacks migrations of this program: run attune-executor migrate up$")
		})
	}
}

// The schema of a commit before the first release is refused with one sentence, whatever is done with it.
func TestASchemaBeforeTheFirstReleaseIsRefused(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	opts := migrations.Options{URL: testkit.AdoptedDatabase(t), Schema: testkit.Schema}
	conn := connect(t, opts)
	exec(t, conn, "UPDATE attune_schema_version SET version_id = version_id - 100 WHERE version_id > 0")
	for name, call := range map[string]func() error{
		"fits":   func() error { _, err := migrations.Fits(ctx, conn, opts.Schema); return err },
		"up":     func() error { _, err := migrations.Up(ctx, opts); return err },
		"down":   func() error { _, err := migrations.Down(ctx, opts, 0); return err },
		"status": func() error { _, err := migrations.Status(ctx, opts); return err },
		"check":  func() error { _, err := migrations.Check(ctx, opts); return err },
	} {
		var unfit *migrations.UnfitError
		require.ErrorAs(t, call(), &unfit, name)
		require.True(t, unfit.Unreleased, name)
		require.Regexp(t, "^schema attune was created by a program before the first release, and cannot be upgraded: run ",
			unfit.Error(), name)
	}
}

// breaking finds statements after which a program that does not know them may fail.
var breaking = regexp.MustCompile(`(?i)\b(DROP|RENAME|SET NOT NULL|ALTER COLUMN \S+ TYPE)\b`)

// A migration that removes or changes an object says whether older programs still run on the schema: it adds a
// row to attune_schema_needs, or has the comment "Older programs run: WHY".
func TestAMigrationThatRemovesNamesTheNeededProgram(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(os.DirFS("sql"), "*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		require.NoError(t, err)
		if version <= 110 { // no release is older
			continue
		}
		text, err := os.ReadFile(path.Join("sql", name))
		require.NoError(t, err)
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		if breaking.MatchString(up) && !strings.Contains(up, "-- Older programs run: ") {
			require.Contains(t, up, "INSERT INTO attune_schema_needs", name)
		}
	}
}
