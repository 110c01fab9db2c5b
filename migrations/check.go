package migrations

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
)

// Safety says what a file does to a system under load.
type Safety string

// The degrees of safety.
const (
	// SafeOnline: takes no lock that blocks reads or writes for longer than an instant.
	SafeOnline Safety = "online"
	// SafeBrief: needs an exclusive lock for an instant, or builds an index on a
	// small table; gives way after the lock timeout.
	SafeBrief Safety = "brief lock"
	// SafeEmpty: makes the tables of an empty schema; there is no load yet.
	SafeEmpty Safety = "new schema"
)

// FileState is one file as Status and Check see it.
type FileState struct {
	Version   int64
	Name      string
	Applied   bool
	AppliedAt time.Time // zero unless applied
	Safety    Safety
	Why       string // what the file takes, in words
}

// State is the answer of Status.
type State struct {
	Schema  string
	Origin  Origin
	Version int64
	Latest  int64
	Files   []FileState // in order of version
}

// Current reports whether every file is applied.
func (s State) Current() bool {
	for _, f := range s.Files {
		if !f.Applied {
			return false
		}
	}
	return true
}

// Plan is the answer of Check: what Up would do now.
type Plan struct {
	State
	// WouldAdopt says that Up would adopt an existing schema.
	WouldAdopt bool
	// Lack is why adoption would be refused; without differences it would not.
	Lack
	// WorkQueues are those that would wait after adoption, which Up refuses without
	// Options.WithoutWorkQueues.
	WorkQueues []WorkQueue
	Ignored    Ignored
	// Pending lists the files Up would apply, in order.
	Pending []FileState
}

// additiveWhy says what the files from 20 on take while they run.
var additiveWhy = map[int64]struct {
	safety Safety
	why    string
}{
	20: {SafeBrief, "adds a trigger to the tables with a column updated"},
	21: {SafeBrief, "adds three columns without rewriting and two triggers to execution"},
	22: {SafeBrief, "adds a trigger to execution"},
	23: {SafeBrief, "adds columns without rewriting and a unique index to the queue of waiting executions"},
	24: {SafeBrief, "adds columns without rewriting to worker and action"},
	25: {SafeOnline, "makes a table"},
	26: {SafeBrief, "adds history triggers to execution and worker, unless the schema writes its own history"},
	27: {SafeOnline, "makes a table"},
	28: {SafeOnline, "makes tables"},
	29: {SafeOnline, "makes a function"},
	30: {SafeBrief,
		"makes partitions ahead of natively partitioned tables; locks their default partition while it is scanned"},
	31: {SafeOnline, "adds the core pack to a schema of our own"},
	32: {SafeOnline, "builds indexes on execution without blocking writers"},
	33: {SafeOnline, "builds indexes on execution without blocking writers"},
	34: {SafeOnline, "sets storage parameters; takes effect on new pages"},
	35: {SafeOnline, "builds indexes on execution without blocking writers"},
	36: {SafeOnline, "builds an index on a table that is nearly always empty"},
	37: {SafeBrief, "adds columns without rewriting to policy, execution and the admission tables, and triggers to policy, action, runtime and execution"},
	38: {SafeBrief, "replaces three triggers of execution by cheaper ones that do the same"},
	39: {SafeBrief, "takes over the queues that another engine has left, with its triggers off for that moment; nothing where there are none"},
	40: {SafeBrief, "adds two columns without rewriting and a trigger each to policy and action"},
	41: {SafeBrief, "adds two columns without rewriting and two indexes to a table that is nearly always small"},
	42: {SafeOnline, "replaces a function"},
	43: {SafeBrief, "replaces a trigger of execution"},
	44: {SafeOnline, "makes a function"},
	45: {SafeBrief, "makes three tables, and adds columns without rewriting to worker and a trigger to execution"},
	46: {SafeBrief,
		"makes three tables, and adds columns without rewriting to worker and dead_letter and a trigger to worker"},
	47: {SafeBrief, "makes three tables, and adds columns without rewriting to each of the workflow tables"},
	48: {SafeOnline, "makes two tables, adds a column without rewriting and builds an index without blocking writers; in a schema that lacks them, two more indexes under a brief lock"},
	49: {SafeBrief, "makes a table, and adds columns without rewriting, two indexes and a trigger to inquiry"},
	50: {SafeBrief, "adds a trigger each to execution and enforcement"},
	52: {SafeOnline, "marks the workflows that are on their way, and builds an index on each of the workflow tables without blocking writers"},
	53: {SafeOnline, "replaces a function"},
	54: {SafeOnline, "builds indexes on execution and workflow_execution without blocking writers"},
	55: {SafeOnline, "makes a function"},
	56: {SafeOnline, "makes a function"},
	57: {SafeOnline, "makes a function"},
	58: {SafeBrief, "adds a column without rewriting to enforcement"},
	59: {SafeOnline,
		"adds a column to a small table, and builds an index on workflow_execution without blocking writers"},
	60: {SafeBrief, "replaces the tables of work queues, which nothing of ours fills, and copies audit_event"},
	61: {SafeOnline, "a function"},
	67: {SafeBrief, "adds a column without rewriting to outbox, and a table"},
	68: {SafeOnline, "builds an index on execution without blocking writers"},
	71: {SafeBrief, "adds a table"},
	72: {SafeBrief, "moves the holders of slots from a column of execution to a table, with a trigger on execution that keeps both alike meanwhile, and drops the column; adds a trigger to worker"},
	73: {SafeOnline, "makes a function"},
	74: {SafeBrief, "replaces a function, and has new bodies of the outbox compressed with lz4"},
}

// Status lists the files and whether each is applied. It changes nothing.
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

// Check says what Up would do, without doing it.
func Check(ctx context.Context, opts Options) (Plan, error) {
	var plan Plan
	err := withSession(ctx, opts, func(ctx context.Context, s *session) error {
		state, recorded, err := s.state(ctx)
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

// state reads the version table itself, because goose would make it.
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
	rows, err := s.conn.QueryContext(ctx,
		"SELECT version_id, max(tstamp) FROM "+VersionTable+" WHERE version_id > 0 GROUP BY version_id")
	if err != nil {
		return nil, fmt.Errorf("read applied versions: %w", err)
	}
	defer func() { _ = rows.Close() }() // the error of reading is in rows.Err
	applied := map[int64]time.Time{}
	for rows.Next() {
		var version int64
		var at time.Time
		if err := rows.Scan(&version, &at); err != nil {
			return nil, fmt.Errorf("read applied versions: %w", err)
		}
		applied[version] = at
	}
	return applied, rows.Err()
}

func filesFor(origin Origin) []FileState {
	root, err := fs.Sub(embedded, "sql")
	if err != nil {
		return nil // the folder is embedded
	}
	skip := map[string]bool{}
	for _, name := range notFor(root, origin) {
		skip[name] = true
	}
	names, _ := fs.Glob(root, "*.sql") // the pattern is constant and valid
	var files []FileState
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil || skip[name] {
			continue
		}
		file := FileState{Version: version, Name: baseName(name), Safety: SafeEmpty,
			Why: "makes tables of a new schema"}
		if known, ok := additiveWhy[version]; ok {
			file.Safety, file.Why = known.safety, known.why
		}
		files = append(files, file)
	}
	return files
}
