package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/attune-go/attune/core/store"
	"github.com/attune-go/attune/core/submit"
	"github.com/attune-go/attune/core/supervise"
)

// backlogMax bounds the executions that wait for a limit, so that a long demo also ends soon.
const backlogMax = 100

// tick is the time between two bursts of requests.
const tick = 250 * time.Millisecond

// traffic requests executions at the configured rate until the context ends.
// It retries requests that failed because a server is away with the next burst.
func (d *Demo) traffic(ctx context.Context) error {
	requests := submit.New(d.store, d.relay)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same requests every time
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

// request returns a random request: mostly short ones, some with a limit, some that fail, of which the
// engine retries some. Without limited it chooses no action with a limit.
func request(random *rand.Rand, limited bool) submit.Request {
	params := func(v any) json.RawMessage {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil // impossible for the literals below
		}
		return raw
	}
	switch n := random.IntN(100); {
	case n < 40:
		return submit.Request{
			ActionRef: "core.echo",
			Params:    params(map[string]any{"message": fmt.Sprintf("hello %d", n)}),
		}
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
		return submit.Request{
			ActionRef: "demo.unlucky",
			Params:    params(map[string]any{"message": "failing on purpose"}),
		}
	default:
		return submit.Request{ActionRef: "core.fail", Params: params(map[string]any{"message": "failing on purpose"})}
	}
}
