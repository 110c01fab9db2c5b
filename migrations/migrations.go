package migrations

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed sql/*.sql
var embedded embed.FS

// Origin says who made the base tables of a schema.
type Origin string

// The origins of a schema.
const (
	OriginNone    Origin = "none"    // nothing there yet
	OriginOwn     Origin = "own"     // made by Up
	OriginAdopted Origin = "adopted" // made by another Attune installation
)

// Step is one applied or removed file.
type Step struct {
	Version  int64
	Name     string
	Duration time.Duration
}

// Result is what Up or Down did. Applied is empty when there was nothing to do.
type Result struct {
	Origin  Origin
	Adopted bool // this call adopted the schema
	Version int64
	Applied []Step
	// WorkQueues are those of a schema adopted now, or refused for them.
	WorkQueues []WorkQueue
	Ignored    Ignored // of a schema adopted now
}

// Up brings the schema to the newest version. It creates the schema when it is
// missing and adopts it when another Attune installation made it. It refuses one
// that the engine cannot work on with an IncompatibleError, and one with work queues
// with a WorkQueuesError. An adoption that fails is taken back, and leaves the
// schema as it was. It is safe to call from many processes at once.
func Up(ctx context.Context, opts Options) (Result, error) {
	var result Result
	err := withSession(ctx, opts, func(ctx context.Context, s *session) error {
		if err := s.createSchema(ctx); err != nil {
			return err
		}
		origin, recorded, err := s.origin(ctx)
		if err != nil {
			return err
		}
		if origin == OriginAdopted && !recorded {
			if err := s.adopt(ctx, &result); err != nil {
				return err
			}
			result.Adopted = true
		}
		if origin == OriginNone {
			origin = OriginOwn
		}
		result.Origin = origin
		provider, err := s.provider(origin)
		if err != nil {
			return err
		}
		result.Applied, err = s.retryOnLock(ctx, provider.Up)
		if err != nil && result.Adopted {
			return errors.Join(err, s.giveUp(ctx))
		}
		if err != nil {
			return err
		}
		if err := s.durable(ctx); err != nil {
			return err
		}
		if result.Version, err = provider.GetDBVersion(ctx); err != nil || origin != OriginAdopted ||
			len(result.Applied) == 0 {
			return err
		}
		return s.markHandedBack(ctx, "NULL")
	})
	if err != nil {
		return result, fmt.Errorf("migrate up: %w", err)
	}
	return result, nil
}

// Down removes everything newer than version to. On an adopted schema it stops
// at the tables that were there before, whatever to says, and then leaves no
// trace of itself.
func Down(ctx context.Context, opts Options, to int64) (Result, error) {
	var result Result
	err := withSession(ctx, opts, func(ctx context.Context, s *session) error {
		origin, recorded, err := s.origin(ctx)
		if err != nil {
			return err
		}
		result.Origin = origin
		if !recorded {
			return nil
		}
		if origin == OriginAdopted && to < firstAdditive && s.opts.HandBack != nil {
			if err := s.handBack(ctx); err != nil {
				return err
			}
		}
		return s.down(ctx, to, &result)
	})
	if err != nil {
		return result, fmt.Errorf("migrate down to %d: %w", to, err)
	}
	return result, nil
}

func (s *session) down(ctx context.Context, to int64, result *Result) error {
	floor := to
	if result.Origin == OriginAdopted {
		floor = max(to, firstAdditive-1)
	}
	provider, err := s.provider(result.Origin)
	if err != nil {
		return err
	}
	if err := s.recordInterrupted(ctx, provider, floor); err != nil {
		return err
	}
	result.Applied, err = s.retryOnLock(ctx, func(ctx context.Context) ([]*goose.MigrationResult, error) {
		return provider.DownTo(ctx, floor)
	})
	if err != nil {
		return err
	}
	if result.Version, err = provider.GetDBVersion(ctx); err != nil {
		return err
	}
	if to > 0 {
		return s.durable(ctx)
	}
	if result.Origin == OriginAdopted {
		if err := s.dropMadeHistory(ctx, provider); err != nil {
			return err
		}
	}
	return s.forget(ctx)
}

// inParts is in the files that commit in parts, so that no busy table is locked for
// longer than one try.
const inParts = "COMMIT AND CHAIN"

// recordInterrupted records the first file that is not applied as applied, if it commits
// in parts: an Up that was interrupted may have left some of them, and Down removes what
// is there.
func (s *session) recordInterrupted(ctx context.Context, provider *goose.Provider, floor int64) error {
	current, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	for _, source := range provider.ListSources() {
		if source.Version <= max(current, floor) {
			continue
		}
		text, err := embedded.ReadFile("sql/" + path.Base(source.Path))
		if err != nil {
			return fmt.Errorf("read migration %d: %w", source.Version, err)
		}
		if !bytes.Contains(text, []byte(inParts)) {
			return nil
		}
		_, err = s.conn.ExecContext(ctx, "INSERT INTO "+VersionTable+" (version_id, is_applied) VALUES ($1, true)",
			source.Version)
		if err != nil {
			return fmt.Errorf("record migration %d to remove what it has left: %w", source.Version, err)
		}
		return nil
	}
	return nil
}

// giveUp takes back an adoption of which a step failed.
func (s *session) giveUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Minute)
	defer cancel()
	if err := s.down(ctx, 0, &Result{Origin: OriginAdopted}); err != nil {
		return fmt.Errorf("take the adoption back, run `migrate down --yes`: %w", err)
	}
	return nil
}

// dropMadeHistory removes the history tables where adoption made them: then they
// were applied after the adoption was recorded.
func (s *session) dropMadeHistory(ctx context.Context, provider *goose.Provider) error {
	var made bool
	err := s.conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM `+VersionTable+` v, attune_schema_origin o
		WHERE v.version_id = $1 AND v.tstamp > o.created)`, historyFile).Scan(&made)
	if err != nil {
		return fmt.Errorf("look whether the history tables are ours: %w", err)
	}
	if made {
		if _, err := provider.ApplyVersion(ctx, historyFile, false); err != nil {
			return fmt.Errorf("drop the history tables: %w", err)
		}
	}
	return nil
}

// provider lists the files that belong to a schema of this origin.
func (s *session) provider(origin Origin) (*goose.Provider, error) {
	files, err := fs.Sub(embedded, "sql")
	if err != nil {
		return nil, fmt.Errorf("open embedded migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, s.db, files,
		goose.WithTableName(VersionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithExcludeNames(notFor(files, origin)),
		// An adopted schema may lack a whole optional group of tables, whose
		// file is then older than the files recorded as applied.
		goose.WithAllowOutofOrder(origin == OriginAdopted),
		goose.WithSlog(s.opts.Logger))
	if err != nil {
		return nil, fmt.Errorf("read embedded migrations: %w", err)
	}
	return provider, nil
}

// notFor names the files written for the other origin.
func notFor(files fs.FS, origin Origin) []string {
	suffix := "_adopted.sql"
	if origin == OriginAdopted {
		suffix = "_own.sql"
	}
	names, _ := fs.Glob(files, "*"+suffix) // the pattern is constant and valid
	return names
}

func stepsOf(results []*goose.MigrationResult) []Step {
	steps := make([]Step, 0, len(results))
	for _, r := range results {
		steps = append(steps, Step{Version: r.Source.Version, Name: baseName(r.Source.Path), Duration: r.Duration})
	}
	return steps
}

func baseName(file string) string { return strings.TrimSuffix(path.Base(file), ".sql") }

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Checksum names the state of the migrations that this program brings: two
// programs with the same one make the same schema.
func Checksum() string {
	hash := sha256.New()
	err := fs.WalkDir(embedded, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := embedded.ReadFile(file)
		_, _ = fmt.Fprintf(hash, "%s %d\n%s", file, len(content), content) // a hash takes everything
		return err
	})
	if err != nil {
		return "unknown" // the files are embedded
	}
	return hex.EncodeToString(hash.Sum(nil)[:6])
}
