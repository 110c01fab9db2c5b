package installation_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/attune-go/attune/lab/installation"
	"github.com/attune-go/attune/lab/testkit"
)

func TestEveryShapeCanBeBuilt(t *testing.T) {
	t.Parallel()
	shapes := installation.Shapes()
	for _, part := range []installation.Migration{
		installation.Audit, installation.History, installation.Supervisor, installation.WorkQueues,
	} {
		shapes = append(shapes,
			installation.Shape{Date: installation.Newest.Date, Without: []installation.Migration{part}})
	}
	for _, shape := range shapes {
		t.Run(shape.Date, func(t *testing.T) {
			t.Parallel()
			ctx := testkit.Context(t)
			conn, err := pgx.Connect(ctx, testkit.EmptyDatabase(t))
			require.NoError(t, err)
			defer func() { _ = conn.Close(ctx) }()
			require.NoError(t, installation.Build(ctx, conn, "attune", shape))
		})
	}
}
