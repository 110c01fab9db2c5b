package migrations

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/pressly/goose/v3"
)

// Safety is the effect of a file on a system under load.
type Safety string

// The degrees of safety.
const (
	// SafeOnline blocks reads and writes for an instant at most.
	SafeOnline Safety = "online"
	// SafeBrief needs an exclusive lock for an instant, or builds an index on a small table. It retries after
	// the lock timeout.
	SafeBrief Safety = "brief lock"
	// SafeEmpty creates the tables of an empty schema without load.
	SafeEmpty Safety = "new schema"
)

// FileState is the state of one file.
type FileState struct {
	Version   int64
	Name      string
	Applied   bool
	AppliedAt time.Time // zero unless applied
	Safety    Safety
	Why       string // what the file does to the database
}

// State is the result of Status.
type State struct {
	Schema  string
	Origin  Origin
	Version int64
	Latest  int64
	Files   []FileState // in order of version
}

// Current reports whether every file is applied.
func (s State) Current() bool {
	return !slices.ContainsFunc(s.Files, func(f FileState) bool { return !f.Applied })
}

// Plan is the result of Check: the effect of Up.
type Plan struct {
	State
	// WouldAdopt reports that Up would adopt an existing schema.
	WouldAdopt bool
	// Lack has the differences for which Up would refuse to adopt.
	Lack
	// WorkQueues are the work queues that would wait after adoption. Up refuses them without
	// Options.WithoutWorkQueues.
	WorkQueues []WorkQueue
	Ignored    Ignored
	// Pending lists the files that Up would apply, in order.
	Pending []FileState
}

// additiveWhy describes the effect of the files from 20 on.
var additiveWhy = map[int64]struct {
	safety Safety
	why    string
}{
	20: {SafeBrief, "adds a trigger to the tables with a column updated"},
	21: {SafeBrief, "adds three columns without rewriting and two triggers to execution"},
	22: {SafeBrief, "adds a trigger to execution"},
	23: {SafeBrief, "adds columns without rewriting and a unique index to the queue of waiting executions"},
	24: {SafeBrief, "adds columns without rewriting to worker and action"},
	25: {SafeOnline, "creates a table"},
	26: {SafeBrief, "adds history triggers to execution and worker, unless the schema writes its own history"},
	27: {SafeOnline, "creates a table"},
	28: {SafeOnline, "creates tables"},
	29: {SafeOnline, "creates a function"},
	30: {
		SafeBrief,
		"creates partitions ahead of natively partitioned tables; locks their default partition while it is scanned",
	},
	31: {SafeOnline, "adds the core pack to a schema of our own"},
	32: {SafeOnline, "builds indexes on execution without blocking writers"},
	33: {SafeOnline, "builds indexes on execution without blocking writers"},
	34: {SafeOnline, "sets storage parameters; takes effect on new pages"},
	35: {SafeOnline, "builds indexes on execution without blocking writers"},
	36: {SafeOnline, "builds an index on a table that is usually empty"},
	37: {SafeBrief, "adds columns without rewriting to policy, execution and the admission tables, and triggers to policy, action, runtime and execution"},
	38: {SafeBrief, "replaces three triggers of execution by cheaper ones that do the same"},
	39: {SafeBrief, "takes over the queues of another engine, with their triggers off meanwhile"},
	40: {SafeBrief, "adds two columns without rewriting and a trigger each to policy and action"},
	41: {SafeBrief, "adds two columns without rewriting and two indexes to a table that is usually small"},
	42: {SafeOnline, "replaces a function"},
	43: {SafeBrief, "replaces a trigger of execution"},
	44: {SafeOnline, "creates a function"},
	45: {SafeBrief, "creates three tables, and adds columns without rewriting to worker and a trigger to execution"},
	46: {
		SafeBrief,
		"creates three tables, and adds columns without rewriting to worker and dead_letter and a trigger to worker",
	},
	47: {SafeBrief, "creates three tables, and adds columns without rewriting to each of the workflow tables"},
	48: {SafeOnline, "creates two tables, adds a column without rewriting and builds an index without blocking writers; in some schemas two more indexes under a brief lock"},
	49: {SafeBrief, "creates a table, and adds columns without rewriting, two indexes and a trigger to inquiry"},
	50: {SafeBrief, "adds a trigger each to execution and enforcement"},
	52: {
		SafeOnline,
		"marks running workflows, and builds an index on each of the workflow tables without blocking writers",
	},
	53: {SafeOnline, "replaces a function"},
	54: {SafeOnline, "builds indexes on execution and workflow_execution without blocking writers"},
	55: {SafeOnline, "creates a function"},
	56: {SafeOnline, "creates a function"},
	57: {SafeOnline, "creates a function"},
	58: {SafeBrief, "adds a column without rewriting to enforcement"},
	59: {
		SafeOnline,
		"adds a column to a small table, and builds an index on workflow_execution without blocking writers",
	},
	60: {SafeBrief, "replaces the unused tables of work queues, and copies audit_event"},
	61: {SafeOnline, "creates a function"},
	67: {SafeBrief, "adds a column without rewriting to outbox, and a table"},
	68: {SafeOnline, "builds an index on execution without blocking writers"},
	71: {SafeBrief, "adds a table"},
	72: {SafeBrief, "moves the holders of slots from a column of execution to a table, with a trigger on execution that synchronizes both meanwhile, and drops the column; adds a trigger to worker"},
	73: {SafeOnline, "creates a function"},
	74: {SafeBrief, "replaces a function, and compresses new bodies of the outbox with lz4"},
	75: {SafeBrief, "adds three tables, which stay empty while traces are off, but for a seed"},
	80: {SafeOnline, "creates functions"},
	85: {SafeOnline, "creates a table"},
	86: {SafeOnline, "creates a table"},
	90: {SafeOnline, "marks workflows that another engine was cancelling"},
	91: {SafeOnline, "creates a table"},
	92: {SafeOnline, "builds an index on execution without blocking writers"},
	93: {SafeOnline, "creates a table"},
}

// Status returns the files and their state. It changes nothing.
func Status(ctx context.Context, opts Options) (State, error) {
	var state State
	err := withSession(ctx, opts, func(ctx context.Context, s *session) (err error) {
		state, _, err = s.state(ctx)
		return err
	})
	if err != nil {
		return state, fmt.Errorf("migration status: %w", err)
	}
	return state, nil
}

// Check returns the effect of Up without changing anything.
func Check(ctx context.Context, opts Options) (Plan, error) {
	var plan Plan
	err := withSession(ctx, opts, func(ctx context.Context, s *session) error {
		state, recorded, err := s.state(ctx)
		if err == nil {
			err = s.refuseEncoding(ctx, recorded)
		}
		if err != nil {
			return err
		}
		plan.State = state
		if state.Origin == OriginAdopted && !recorded {
			plan.WouldAdopt = true
			if plan.Lack, err = s.compare(ctx); err != nil {
				return err
			}
			if plan.WorkQueues, err = s.workQueues(ctx); err != nil {
				return err
			}
			if len(plan.Differences) == 0 { // the columns are there
				if plan.Ignored, err = s.ignored(ctx); err != nil {
					return err
				}
			}
		}
		for _, file := range state.Files {
			if !file.Applied {
				plan.Pending = append(plan.Pending, file)
			}
		}
		return nil
	})
	if err != nil {
		return plan, fmt.Errorf("check migrations: %w", err)
	}
	return plan, nil
}

// state reads the version table itself, because goose would create it.
func (s *session) state(ctx context.Context) (State, bool, error) {
	origin, recorded, err := s.origin(ctx)
	if err != nil {
		return State{}, false, err
	}
	state := State{Schema: s.opts.Schema, Origin: origin}
	applied := map[int64]time.Time{}
	switch {
	case recorded:
		applied, err = s.appliedVersions(ctx)
	case origin == OriginAdopted:
		var present []int64
		present, err = s.presentBase(ctx)
		for _, v := range present {
			applied[v] = time.Time{}
		}
	}
	if err != nil {
		return State{}, false, err
	}
	state.Files = filesFor(origin)
	for i := range state.Files {
		file := &state.Files[i]
		file.AppliedAt, file.Applied = applied[file.Version]
		if file.Applied {
			state.Version = max(state.Version, file.Version)
		}
		state.Latest = max(state.Latest, file.Version)
	}
	return state, recorded, nil
}

func (s *session) appliedVersions(ctx context.Context) (map[int64]time.Time, error) {
	type record struct {
		version int64
		at      time.Time
	}
	records, err := scanRows(ctx, s, func(r *record) []any { return []any{&r.version, &r.at} },
		"SELECT version_id, max(tstamp) FROM "+VersionTable+" WHERE version_id > 0 GROUP BY version_id")
	if err != nil {
		return nil, fmt.Errorf("read applied versions: %w", err)
	}
	applied := map[int64]time.Time{}
	for _, r := range records {
		applied[r.version] = r.at
	}
	return applied, nil
}

func filesFor(origin Origin) []FileState {
	root, err := fs.Sub(embedded, "sql")
	if err != nil {
		return nil // impossible: the folder is embedded
	}
	skip := notFor(root, origin)
	names, _ := fs.Glob(root, "*.sql") // the pattern is constant and valid
	var files []FileState
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil || slices.Contains(skip, name) {
			continue
		}
		file := FileState{
			Version: version, Name: baseName(name), Safety: SafeEmpty,
			Why: "creates tables of a new schema",
		}
		if known, ok := additiveWhy[version]; ok {
			file.Safety, file.Why = known.safety, known.why
		}
		files = append(files, file)
	}
	return files
}
