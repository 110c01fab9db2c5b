package demo

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
)

//go:embed demo.sql
var seedSQL string

// seed makes the demo's actions and limits.
func (d *Demo) seed(ctx context.Context) error {
	if _, err := d.store.Pool().Exec(ctx, seedSQL); err != nil {
		return fmt.Errorf("make the demo's actions and limits: %w", err)
	}
	return nil
}

// backlogMax is how many executions may wait for a limit before no more of
// them are requested, so that the demo ends soon however long it ran.
const backlogMax = 100

// tick is how often a burst of requests is sent.
const tick = 250 * time.Millisecond

// traffic requests executions at the configured rate until the context ends.
// A request that fails because a server is away is tried with the next burst.
func (d *Demo) traffic(ctx context.Context) error {
	requests := submit.New(d.store, d.relay)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same show every time
	owed := 0.0
	for supervise.Sleep(ctx, tick) {
		owed += float64(d.cfg.Rate) * tick.Seconds()
		burst := make([]submit.Request, 0, int(owed)+1)
		for ; owed >= 1; owed-- {
			burst = append(burst, request(random, d.waiting.Load() < backlogMax))
		}
		requested, err := requests.RequestMany(ctx, burst)
		for _, r := range requested {
			d.requested = append(d.requested, r.ID)
		}
		if err != nil {
			if ctx.Err() == nil && store.ClassOf(err) == store.ClassFatal {
				return err
			}
			owed += float64(len(burst))
		}
	}
	return nil
}

// request draws one request: mostly short work, some with a limit, some that
// fail, of which some are repeated. What would have to wait for a limit is left out unless limited is true.
func request(random *rand.Rand, limited bool) submit.Request {
	params := func(v any) json.RawMessage {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil // cannot happen for the literals below
		}
		return raw
	}
	switch n := random.IntN(100); {
	case n < 40:
		return submit.Request{ActionRef: "core.echo",
			Params: params(map[string]any{"message": fmt.Sprintf("hello %d", n)})}
	case n < 52, n < 95 && !limited:
		return submit.Request{ActionRef: "core.noop"}
	case n < 60:
		return submit.Request{ActionRef: "demo.notify"}
	case n < 80:
		return submit.Request{
			ActionRef: "demo.report", Params: params(map[string]any{"seconds": 0.1 + random.Float64()*0.4}),
			Priority: submit.Priority(random.IntN(3) - 1),
		}
	case n < 95:
		tenant := []string{"acme", "globex", "initech"}[random.IntN(3)]
		return submit.Request{ActionRef: "demo.sync", Params: params(map[string]any{
			"seconds": 0.1 + random.Float64()*0.2, "tenant": tenant,
		})}
	case n < 97 && limited:
		return submit.Request{ActionRef: "demo.unlucky",
			Params: params(map[string]any{"message": "failing on purpose"})}
	default:
		return submit.Request{ActionRef: "core.fail", Params: params(map[string]any{"message": "failing on purpose"})}
	}
}
