package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/message"
	"github.com/attune-go/attune/core/telemetry"
)

// packNotices consumes the notices about installed, changed and deleted packs. Files and rows of a
// pack are read for every execution; only the interpreters are cached, and a pack may bring new
// ones.
type packNotices struct {
	member   *membership
	packsDir string
	// announced returns the capabilities of the current interpreters.
	announced func(ctx context.Context) (map[string]any, error)
}

// handle processes the notices of a batch together. It logs a failure and acknowledges the batch anyway: the next
// notice, or the next start, repeats the work. If another process has taken the name, the notices are for that one.
func (p *packNotices) handle(ctx context.Context, batch *broker.Batch) {
	registered := false
	for i := range batch.Deliveries {
		notice, err := message.Decode[message.PackRegistered](batch.Deliveries[i].Body)
		if err == nil && notice.MessageType != message.TypePackRegistered &&
			notice.MessageType != message.TypePackDeleted {
			err = fmt.Errorf("a %s is no notice about a pack", notice.MessageType)
		}
		if err != nil {
			p.member.logger.WarnContext(telemetry.Often(ctx), "Notice about a pack dead-lettered",
				"message_id", batch.Deliveries[i].MessageID, "error", err)
			batch.Deliveries[i].GiveUp(ctx, err, 1)
			continue
		}
		if notice.MessageType == message.TypePackRegistered {
			registered = true
			p.inspect(ctx, notice.Payload)
		}
	}
	if registered {
		if err := p.refresh(ctx); err != nil {
			p.member.logger.WarnContext(ctx, "Changed interpreters not announced", "worker_id", p.member.id, "error",
				err)
		}
	}
	if !p.member.owns(ctx) {
		giveBack(ctx, batch, p.member.logger)
		return
	}
	if err := batch.Ack(); err != nil {
		p.member.logger.DebugContext(ctx, "Notices about packs not acknowledged, the broker delivers them again",
			"error", err)
	}
}

// inspect warns if this worker lacks the files of a registered pack.
func (p *packNotices) inspect(ctx context.Context, pack message.PackRegistered) {
	if p.packsDir == "" || pack.PackRef != filepath.Base(pack.PackRef) {
		return
	}
	folder := filepath.Join(p.packsDir, pack.PackRef)
	if _, err := os.Stat(folder); err != nil {
		p.member.logger.WarnContext(telemetry.Often(ctx), "Registered pack has no files on this worker",
			"pack", pack.PackRef, "version", pack.Version, "folder", folder, "error", err)
		return
	}
	p.member.logger.InfoContext(telemetry.Often(ctx), "Pack registered",
		"pack", pack.PackRef, "version", pack.Version, "runtimes", pack.RuntimeNames)
}

// refresh announces the interpreters if they have changed.
func (p *packNotices) refresh(ctx context.Context) error {
	changed, err := p.announced(ctx)
	if err != nil {
		return err
	}
	if len(changed) == 0 {
		return nil
	}
	raw, err := json.Marshal(changed)
	if err != nil {
		return fmt.Errorf("encode the interpreters: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	n, err := p.member.store.AnnounceInterpreters(ctx, raw, p.member.id, p.member.incarnation)
	if err != nil {
		return fmt.Errorf("write the capabilities: %w", err)
	}
	if n > 0 {
		p.member.logger.InfoContext(ctx, "Changed interpreters announced", "worker_id", p.member.id)
	}
	return nil
}
