package datapath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/attune-go/attune/lab/bench/floor"
	"github.com/attune-go/attune/lab/measure"
)

// Load is a row of the table that shows the floor program beside the product.
type Load struct {
	What string `json:"what"`
	// Together is how many executions are requested at once; the next ones follow when all have released their
	// slots. 0 is a flood through one queue, in which every batch completes and promotes.
	Together   int           `json:"together,omitempty"`
	Every      time.Duration `json:"every_ns,omitempty"` // the least time from one request to the next
	Limit      int           `json:"limit,omitempty"`
	System     bool          `json:"system,omitempty"` // the whole system, through the broker
	Executions int           `json:"executions"`       // of a lap; fewer are enough to count statements
}

// Loads returns the loads; quick ones are a tenth.
func Loads(quick bool) []Load {
	list := []Load{
		{What: "one every 15 ms", Together: 1, Every: 15 * time.Millisecond, Executions: 200},
		{What: "one at a time", Together: 1, Executions: 200},
		{What: "5 together", Together: 5, Executions: 500},
		{What: "10 together", Together: 10, Executions: 800},
		{What: "50 together", Together: 50, Executions: 2_000},
		{What: "200 together", Together: 200, Executions: 4_000},
		{What: "hot key, limit 10: complete and promote", Limit: 10, Executions: 1_000},
		{What: "whole system, 100/s", Together: 1, Every: 10 * time.Millisecond, System: true, Executions: 400},
	}
	for i := range list {
		if quick {
			list[i].Executions = max(list[i].Executions/10, list[i].Together)
		}
	}
	return list
}

// Cost is what an execution costs; WallP50 is the time of all that are together, or of a batch of the flood.
type Cost struct {
	PostgreSQL float64 `json:"postgres_cpu_micros"`
	Go         float64 `json:"go_cpu_micros"`
	RabbitMQ   float64 `json:"rabbitmq_cpu_micros,omitempty"`
	WallP50    float64 `json:"wall_ms_p50"`
	Statements float64 `json:"statements,omitempty"`
	Trips      float64 `json:"trips,omitempty"`
	Commits    float64 `json:"commits,omitempty"` // of transactions with more than one statement
	WALBytes   float64 `json:"wal_bytes"`
	Foreign    float64 `json:"foreign_cpu"` // CPUs that other programs used
}

// Pair is the floor program beside the product: medians of laps in turn.
type Pair struct {
	Load    Load `json:"load"`
	Floor   Cost `json:"floor"`
	Product Cost `json:"product"`
}

// contender is one of both programs on a database of its own.
type contender interface {
	// lap runs the executions of the load and returns the times of its waves, or of the batches of its flood.
	lap(ctx context.Context, l Load) ([]time.Duration, error)
	// end checks the end of n executions and drops the database.
	end(ctx context.Context, n int) error
	close()
}

// Pairs measures the floor program and the product in turn, rounds times, on databases of their own on the server.
func Pairs(
	ctx context.Context, servers measure.Servers, loads []Load, rounds int, logger *slog.Logger,
) ([]Pair, error) {
	s, err := openServer(ctx, servers.DatabaseURL, logger)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	s.broker = servers.Broker
	return s.pairs(ctx, servers, loads, rounds)
}

func (s *server) pairs(ctx context.Context, servers measure.Servers, loads []Load, rounds int) ([]Pair, error) {
	list := make([]Pair, len(loads))
	for i, l := range loads {
		list[i].Load = l
		measured := s.pair
		if l.System {
			measured = func(ctx context.Context, l Load, rounds int) (Cost, Cost, error) {
				return s.system(ctx, servers, l, rounds)
			}
		}
		var err error
		if list[i].Floor, list[i].Product, err = measured(ctx, l, rounds); err != nil {
			return nil, fmt.Errorf("%s: %w", l.What, err)
		}
	}
	return list, nil
}

func (s *server) pair(ctx context.Context, l Load, rounds int) (least, product Cost, err error) {
	few := l
	few.Executions = min(l.Executions, max(l.Executions/20, 2*l.Together, 40))
	var counted [2]Cost
	var both [2]contender
	for side := range both {
		if counted[side], err = s.counted(ctx, side, few); err != nil {
			return least, product, err
		}
	}
	for side := range both {
		if both[side], err = s.contender(ctx, side, l, nil); err != nil {
			return least, product, err
		}
		defer both[side].close()
		if _, err := both[side].lap(ctx, few); err != nil {
			return least, product, err
		}
	}
	var costs [2][]Cost
	for range rounds {
		for side, one := range both {
			cost, err := s.cost(ctx, one, l)
			if err != nil {
				return least, product, err
			}
			cost.Statements, cost.Trips = counted[side].Statements, counted[side].Trips
			cost.Commits = counted[side].Commits
			costs[side] = append(costs[side], cost)
		}
	}
	for _, one := range both {
		if err := one.end(ctx, few.Executions+rounds*l.Executions); err != nil {
			return least, product, err
		}
	}
	return median(costs[0]), median(costs[1]), nil
}

// counted counts what an execution asks of the database, behind a proxy and so apart from its costs.
func (s *server) counted(ctx context.Context, side int, few Load) (c Cost, err error) {
	m := newMeter()
	one, err := s.contender(ctx, side, few, m)
	if err != nil {
		return c, err
	}
	defer one.close()
	for range 3 { // the first two prepare statements
		m.forget()
		if _, err := one.lap(ctx, few); err != nil {
			return c, err
		}
	}
	return m.cost(few.Executions), one.end(ctx, 3*few.Executions)
}

// contender starts the floor program (0) or the product, seen by the meter if there is one.
func (s *server) contender(ctx context.Context, side int, l Load, m *meter) (contender, error) {
	w, err := s.build(ctx, Scenario{
		Design: [2]Design{designFloor, DesignEngine}[side], Keys: 1, Limit: l.Limit, Replicas: 1, Workers: 1,
		Batch: dispatchSize, meter: m,
	})
	if err != nil {
		return nil, err
	}
	if side == 1 {
		return &productSide{world: w}, w.start(ctx) // only the end of ctx prevents it
	}
	p, err := floor.Open(ctx, w.url, schema, l.Limit)
	if err != nil {
		w.close()
		return nil, err
	}
	return &floorSide{world: w, program: p}, nil
}

// cost measures one lap.
func (s *server) cost(ctx context.Context, one contender, l Load) (c Cost, err error) {
	before := s.burned()
	wal, err := s.wal(ctx)
	if err != nil {
		return c, err
	}
	took, err := one.lap(ctx, l)
	if err != nil {
		return c, err
	}
	spent := s.burned().since(before)
	after, err := s.wal(ctx)
	n := float64(l.Executions)
	if !l.System {
		spent.broker = 0 // it is idle
	}
	return Cost{
		PostgreSQL: float64(spent.postgres.Microseconds()) / n, Go: float64(spent.own.Microseconds()) / n,
		RabbitMQ: float64(spent.broker.Microseconds()) / n,
		WallP50:  ms(quantile(took, 0.5)), WALBytes: float64(after-wal) / n,
		Foreign: spent.foreign.Seconds() / spent.elapsed.Seconds(),
	}, err
}

// system measures the floor program through the broker and the whole product in turn.
func (s *server) system(
	ctx context.Context, servers measure.Servers, l Load, rounds int,
) (least, product Cost, err error) {
	var costs [2][]Cost
	for range rounds {
		one, err := s.contender(ctx, 0, l, nil)
		if err != nil {
			return least, product, err
		}
		defer one.close()
		sided, _ := one.(*floorSide)
		var cost Cost
		if err = sided.program.Through(servers.AMQPURL); err == nil {
			cost, err = s.cost(ctx, one, l)
		}
		if err == nil {
			cost.WallP50, err = s.wall(ctx, sided.url)
		}
		if err = errors.Join(err, one.end(ctx, l.Executions)); err != nil {
			return least, product, err
		}
		costs[0] = append(costs[0], cost)
		if cost, err = s.product(ctx, servers, l); err != nil {
			return least, product, err
		}
		costs[1] = append(costs[1], cost)
	}
	return median(costs[0]), median(costs[1]), nil
}

// product measures engine, workers and broker at a pace, in a database of their own.
func (s *server) product(ctx context.Context, servers measure.Servers, l Load) (c Cost, err error) {
	at, drop, err := s.fresh(ctx)
	if err != nil {
		return c, err
	}
	defer drop()
	servers.DatabaseURL = at
	before := s.burned()
	r, err := measure.Run(ctx, measure.Config{
		Profile: l.What, Executions: l.Executions, Actions: 1, Rate: float64(time.Second / l.Every),
		Replicas: 1, Workers: 2, Concurrency: 50,
	}, servers, s.logger)
	if err != nil {
		return c, err
	}
	spent := s.burned().since(before)
	c = Cost{
		PostgreSQL: 1e6 * r.PostgresCPU, Go: 1e6 * r.GoCPU, RabbitMQ: 1e6 * r.BrokerCPU,
		WALBytes: r.WALBytesPerExecution, Foreign: spent.foreign.Seconds() / spent.elapsed.Seconds(),
	}
	c.WallP50, err = s.wall(ctx, at)
	return c, err
}

// wall is the median time from the requests to the ends of a database, in milliseconds.
func (s *server) wall(ctx context.Context, at string) (p50 float64, err error) {
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		return 0, fmt.Errorf("connect to read times: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it only read
	if err := conn.QueryRow(ctx, wallSQL).Scan(&p50); err != nil {
		return 0, fmt.Errorf("read the times of executions: %w", err)
	}
	return p50, nil
}

type floorSide struct {
	*world
	program *floor.Program
}

func (f *floorSide) lap(ctx context.Context, l Load) ([]time.Duration, error) {
	if l.Together == 0 {
		return f.program.Flood(ctx, l.Executions)
	}
	return waves(l, func(int) error { return f.program.Wave(ctx, l.Together) })
}

func (f *floorSide) end(ctx context.Context, n int) error {
	f.program.Close(ctx)
	return f.finish(ctx, n)
}

type productSide struct {
	*world
	sent int
}

func (p *productSide) lap(ctx context.Context, l Load) (took []time.Duration, err error) {
	p.tally.reset()
	if l.Together == 0 {
		err = p.send(ctx, p.sent, l.Executions, 0)
	} else {
		took, err = waves(l, func(sent int) error {
			if err := p.send(ctx, p.sent, l.Together, 0); err != nil {
				return err
			}
			return p.awaitEnds(ctx, sent+l.Together)
		})
	}
	if err != nil {
		return nil, err
	}
	p.sent += l.Executions
	if err := p.awaitEnds(ctx, l.Executions); err != nil {
		return nil, err
	}
	if err := p.awaitPublished(ctx, 20*time.Millisecond); err != nil { // few polls: they cost what is measured
		return nil, err
	}
	if l.Together == 0 {
		p.tally.mu.Lock()
		defer p.tally.mu.Unlock()
		took = p.tally.batches
	}
	return took, nil
}

func (p *productSide) end(ctx context.Context, n int) error {
	if err := p.stop(); err != nil {
		return err
	}
	return p.finish(ctx, n)
}

// finish checks the end of n executions and drops the database.
func (w *world) finish(ctx context.Context, n int) error {
	defer w.close()
	_, err := w.check(ctx, w.query.Pool(), n)
	return err
}

// waves runs the executions of a load, those together at once, and returns the time of each wave.
func waves(l Load, run func(sent int) error) (took []time.Duration, err error) {
	for sent := 0; sent < l.Executions; sent += l.Together {
		begun := time.Now()
		due := time.After(l.Every)
		if err := run(sent); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun))
		<-due
	}
	return took, nil
}

// BudgetGoals returns the budget of one execution, as its part without HTTP and broker keeps it.
func BudgetGoals(list []Pair) (goals []Goal) {
	for _, p := range list {
		if p.Load.Together == 1 && p.Load.Every == 0 {
			c := p.Product
			goals = append(goals, Goal{
				Number: "B9", Bar: "≤ 10, 5, 5, 4.0 kB",
				What:     "data path, " + p.Load.What + ": statements, trips, commits and WAL of an execution",
				Measured: fmt.Sprintf("%.1f, %.1f, %.1f, %.1f kB", c.Statements, c.Trips, c.Commits, c.WALBytes/1000),
				Met:      c.Statements <= 10 && c.Trips <= 5 && c.Commits <= 5 && c.WALBytes <= 4000,
			})
		}
	}
	return goals
}

// PrintPairs writes the table.
func PrintPairs(out io.Writer, list []Pair) {
	columns := []struct {
		name, format string
		of           func(Cost) float64
	}{
		{"POSTGRESQL µs", "%.0f", func(c Cost) float64 { return c.PostgreSQL }},
		{"GO µs", "%.0f", func(c Cost) float64 { return c.Go }},
		{"RABBITMQ µs", "%.0f", func(c Cost) float64 { return c.RabbitMQ }},
		{"ALL µs", "%.0f", func(c Cost) float64 { return c.PostgreSQL + c.Go + c.RabbitMQ }},
		{"WALL p50 ms", "%.2f", func(c Cost) float64 { return c.WallP50 }},
		{"STATEMENTS", "%.2f", func(c Cost) float64 { return c.Statements }},
		{"TRIPS", "%.2f", func(c Cost) float64 { return c.Trips }},
		{"COMMITS", "%.2f", func(c Cost) float64 { return c.Commits }},
		{"WAL B", "%.0f", func(c Cost) float64 { return c.WALBytes }},
		{"OTHERS", "%.1f", func(c Cost) float64 { return c.Foreign }},
	}
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	p("AN EXECUTION COSTS\t")
	for _, column := range columns {
		p("\t%s", column.name)
	}
	for _, pair := range list {
		for i, line := range []string{pair.Load.What + "\tfloor", "\tproduct", "\tratio"} {
			p("\n%s", line)
			for _, column := range columns {
				values := []float64{column.of(pair.Floor), column.of(pair.Product)}
				switch {
				case values[1] == 0:
					p("\t–")
				case i == 2:
					p("\t%.2f", values[0]/values[1])
				default:
					p("\t"+column.format, values[i])
				}
			}
		}
	}
	p("\n")
}
