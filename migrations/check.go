package migrations

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
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
	if unfit, err := s.unfit(ctx); err != nil || unfit != nil && unfit.Unreleased {
		return State{}, false, cmp.Or(err, error(unfit))
	}
	origin, recorded, err := s.origin(ctx)
	if err != nil {
		return State{}, false, err
	}
	state := State{Schema: s.opts.Schema, Origin: origin}
	applied := map[int64]time.Time{}
	if recorded {
		if applied, err = s.appliedVersions(ctx); err != nil {
			return State{}, false, err
		}
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
		safety, why := underLoad(root, name)
		files = append(files, FileState{Version: version, Name: baseName(name), Safety: safety, Why: why})
	}
	return files
}

// underLoad reads the line "-- Under load: SAFETY. WHY." of a file.
func underLoad(root fs.FS, name string) (Safety, string) {
	text, _ := fs.ReadFile(root, name) // the files are embedded
	_, text, _ = bytes.Cut(text, []byte("-- Under load: "))
	line, _, _ := strings.Cut(string(text), ".\n")
	safety, why, _ := strings.Cut(line, ". ")
	return Safety(safety), strings.ReplaceAll(why, "\n--", "")
}
