package migrations

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed sql/*.sql
var embedded embed.FS

// Origin is the creator of a schema's base tables.
type Origin string

// The origins of a schema.
const (
	OriginNone    Origin = "none"    // no tables yet
	OriginOwn     Origin = "own"     // created by Up
	OriginAdopted Origin = "adopted" // created by another Attune installation
)

// Step is one applied or removed file.
type Step struct {
	Version  int64
	Name     string
	Duration time.Duration
}

// Result is the result of Up or Down. Applied is empty when there was nothing to do.
type Result struct {
	Origin  Origin
	Adopted bool // this call adopted the schema
	Version int64
	Applied []Step
	// WorkQueues are the work queues of a schema that this call adopted, or refused because of them.
	WorkQueues []WorkQueue
	Ignored    Ignored // of a schema that this call adopted
}

// Up migrates the schema to the newest version. It creates a missing schema and adopts the schema of another
// Attune installation. It refuses an incompatible one with an IncompatibleError, and one with work queues with
// a WorkQueuesError. A failed adoption restores the schema. Processes may call Up concurrently.
func Up(ctx context.Context, opts Options) (Result, error) {
	var result Result
	err := withSession(ctx, opts, func(ctx context.Context, s *session) error {
		if err := s.refuse(ctx); err != nil {
			return err
		}
		origin, recorded, err := s.origin(ctx)
		if err == nil {
			err = s.refuseEncoding(ctx, recorded)
		}
		if err != nil {
			return err
		}
		if err := s.createSchema(ctx); err != nil {
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
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Minute)
			defer cancel()
			if undo := s.down(ctx, 0, &Result{Origin: OriginAdopted}); undo != nil {
				err = errors.Join(err, fmt.Errorf("undo the adoption, run `migrate down --yes`: %w", undo))
			}
			return err
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

// Down removes everything newer than version to. On an adopted schema it keeps the tables of the installation
// with any to, and removes all others.
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
		if err := s.refuse(ctx); err != nil {
			return err
		}
		if origin == OriginAdopted && to < takeOver && s.opts.HandBack != nil {
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
	provider, err := s.provider(result.Origin)
	if err != nil {
		return err
	}
	if err := s.recordInterrupted(ctx, provider, to); err != nil {
		return err
	}
	result.Applied, err = s.retryOnLock(ctx, func(ctx context.Context) ([]*goose.MigrationResult, error) {
		return provider.DownTo(ctx, to)
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
	// Without the record the schema is empty, or as before its adoption.
	if _, err := s.conn.ExecContext(ctx, "DROP TABLE IF EXISTS "+VersionTable+", attune_schema_origin"); err != nil {
		return fmt.Errorf("drop the version table: %w", err)
	}
	return nil
}

// inParts matches the files that commit in parts, so that they lock busy tables for one attempt at most.
var inParts = regexp.MustCompile("COMMIT AND CHAIN|NO TRANSACTION")

// recordInterrupted records the first unapplied file as applied if it commits in parts: an interrupted Up may
// have left some of them, and Down must remove them.
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
		if !inParts.Match(text) {
			return nil
		}
		_, err = s.conn.ExecContext(ctx, "INSERT INTO "+VersionTable+" (version_id, is_applied) VALUES ($1, true)",
			source.Version)
		if err != nil {
			return fmt.Errorf("record the interrupted migration %d: %w", source.Version, err)
		}
		return nil
	}
	return nil
}

// provider returns the files for a schema of this origin.
func (s *session) provider(origin Origin) (*goose.Provider, error) {
	files, err := fs.Sub(embedded, "sql")
	if err != nil {
		return nil, fmt.Errorf("open embedded migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, s.db, files,
		goose.WithTableName(VersionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithExcludeNames(notFor(files, origin)),
		goose.WithAllowOutofOrder(true), // Fits reports a schema that lacks an older file
		goose.WithSlog(s.opts.Logger))
	if err != nil {
		return nil, fmt.Errorf("read embedded migrations: %w", err)
	}
	return provider, nil
}

// notFor returns the files for the other origin.
func notFor(files fs.FS, origin Origin) []string {
	suffix := "_adopted.sql"
	if origin == OriginAdopted {
		suffix = "_own.sql"
	}
	names, _ := fs.Glob(files, "*"+suffix) // the pattern is constant and valid
	return names
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

// Checksum returns a checksum of the migrations: programs with the same one create the same schema.
func Checksum() string {
	hash := sha256.New()
	err := fs.WalkDir(embedded, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := embedded.ReadFile(file)
		_, _ = fmt.Fprintf(hash, "%s %d\n%s", file, len(content), content) // never fails
		return err
	})
	if err != nil {
		return "unknown" // impossible: the files are embedded
	}
	return hex.EncodeToString(hash.Sum(nil)[:6])
}
