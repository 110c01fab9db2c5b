package checkup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-go/attune/core/alerting"
	"github.com/attune-go/attune/core/broker"
	"github.com/attune-go/attune/core/doctor"
	"github.com/attune-go/attune/core/monitor"
	"github.com/attune-go/attune/core/phrase"
)

func lookReplicas(ctx context.Context, v *visit) (Finding, error) {
	all, err := v.view.Replicas(ctx)
	if err != nil {
		return Finding{}, err
	}
	v.replicas = all
	var lines []string
	alive, gone, fix := 0, 0, ""
	for _, r := range all.List {
		if living(r) && len(r.Details.Installation) > 0 {
			fix = r.Details.Installation[0].Fix
		}
		name := fmt.Sprintf("%s on %s, pid %d", r.Short(), r.Host, r.PID)
		if living(r) {
			alive++
		} else {
			gone++
		}
		if len(r.Problems) > 0 {
			lines = append(lines, name+": "+strings.Join(r.Problems, ", "))
			continue
		}
		lines = append(lines, name+": "+ticks(r))
	}
	switch {
	case alive == 0:
		return failed("start one with attune-executor serve", "no replica of the engine runs").with(lines...), nil
	case fix != "":
		return failed(fix, "the installation is at fault; %d of %d are well", all.Well, all.Total).with(lines...), nil
	case all.Well < all.Total-int64(gone):
		return failed("look into the log of the replica", "%d of %d are well", all.Well, all.Total).with(lines...), nil
	case gone > 0: // other replicas do its work
		return passed("%d of %d are well; %d vanished and will leave the list after %s", all.Well, all.Total, gone,
			v.Config.Retention.SilentReplicas).with(lines...), nil
	}
	return passed("%d of %d are well, every loop ticks", all.Well, all.Total).with(lines...), nil
}

func living(r monitor.Replica) bool { return r.State != monitor.StateVanished && r.Age < deadAfter }

// deadAfter is the silence from which a replica does not count.
const deadAfter = 30 * time.Second

// ticks lists the last tick of every loop.
func ticks(r monitor.Replica) string {
	names := maps.Clone(r.Details.Loops)
	if names == nil {
		names = map[string]monitor.ReplicaLoop{}
	}
	for name := range r.Loops {
		names[name] = monitor.ReplicaLoop{}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		when := "not yet"
		if _, ok := r.Loops[name]; ok {
			when = r.Silence(name).Round(time.Second).String()
		}
		parts = append(parts, name+" "+when)
	}
	if len(parts) == 0 {
		return "does not tell of its loops"
	}
	return "last ticks " + strings.Join(parts, ", ")
}

func lookVersions(_ context.Context, v *visit) (Finding, error) {
	versions := map[string]int{}
	for _, r := range v.alive() {
		versions[r.Version]++
	}
	var lines []string
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		lines = append(lines,
			phrase.Plural(versions[version], "running replica is", "running replicas are")+" "+version)
	}
	switch {
	case len(versions) > 1:
		return failed("finish the upgrade: replace the replicas of the older version", "replicas run %d versions",
			len(versions)).with(lines...), nil
	case len(versions) == 1 && versions[v.Version] == 0:
		lines = append(lines, "this program is not")
	}
	return passed("this program is %s", v.Version).with(lines...), nil
}

// skewLimit is the tolerated clock difference. The engine uses only the database's clock. But people
// read times, and another executor may compare heartbeats with its own clock.
const skewLimit = 5 * time.Second

func lookClocks(ctx context.Context, v *visit) (Finding, error) {
	offset, err := v.offset(ctx)
	if err != nil {
		return Finding{}, err
	}
	var wrong []string
	if offset.Abs() > skewLimit {
		wrong = append(wrong, "this machine is "+apart(-offset))
	}
	for _, r := range v.alive() {
		if of := r.Details.Clock.Sub(r.LastSeen); !r.Details.Clock.IsZero() && of.Abs() > skewLimit {
			wrong = append(wrong, fmt.Sprintf("replica %s on %s is %s", r.Short(), r.Host, apart(of)))
		}
	}
	if v.workers != nil {
		for _, w := range v.workers.List {
			if w.Probe != nil && w.Probe.Skew != nil && w.Probe.Skew.Abs() > skewLimit {
				wrong = append(wrong, fmt.Sprintf("worker %s is %s", w.Name, apart(*w.Probe.Skew)))
			}
		}
	}
	if len(wrong) > 0 {
		return failed("let every machine follow a time server", "%s from the database's by more than %s",
			phrase.Plural(len(wrong), "clock differs", "clocks differ"), skewLimit).
			with(wrong...), nil
	}
	return passed("this machine and the database are %s apart", offset.Abs().Round(time.Millisecond)), nil
}

func apart(d time.Duration) string {
	if d > 0 {
		return d.Round(time.Second).String() + " ahead of the database"
	}
	return (-d).Round(time.Second).String() + " behind the database"
}

// offset is how far the database's clock is ahead, by the quickest of three queries.
func (v *visit) offset(ctx context.Context) (best time.Duration, err error) {
	quickest := time.Duration(-1)
	for range 3 {
		var at time.Time
		begin := time.Now()
		if err := v.Store.Pool().QueryRow(ctx, `select clock_timestamp()`).Scan(&at); err != nil {
			return 0, fmt.Errorf("read the clock of the database: %w", err)
		}
		if took := time.Since(begin); quickest < 0 || took < quickest {
			quickest, best = took, at.Sub(begin.Add(took/2))
		}
	}
	return best, nil
}

// lookRivals checks whether another engine consumes from the same queues.
func lookRivals(ctx context.Context, v *visit) (Finding, error) {
	var listed []broker.QueueConsumer
	if v.wires != nil {
		listed = v.wires.consumers
	}
	others, err := alerting.OtherExecutors(ctx, v.Broker, listed, len(v.alive()), v.knownReplicas(),
		v.Config.MessageQueue.RabbitMQ.Quorum())
	switch {
	case err != nil:
		return Finding{}, err
	case len(others) > 0:
		return failed("stop the other engine: two of different kinds must not run at once",
			"another program consumes from the engine's queues").
			with(others...), nil
	case v.wires == nil || v.wires.uncounted.Fact != "":
		return passed("no more consumers than replicas").with(
			"who they are is not seen without the management API and its statistics"), nil
	}
	return passed("none consumes from the engine's queues"), nil
}

// knownReplicas are the ids of all replicas with a row.
func (v *visit) knownReplicas() (ids []string) {
	if v.replicas == nil {
		return nil
	}
	for _, r := range v.replicas.List {
		ids = append(ids, r.ID)
	}
	return ids
}

func lookConsistency(ctx context.Context, v *visit) (Finding, error) {
	violations, err := doctor.Invariants(ctx, v.Store.Pool())
	if err != nil {
		return Finding{}, err
	}
	if len(violations) == 0 {
		return passed("%d checks of consistency found nothing", len(doctor.Checks())), nil
	}
	broken := map[string]bool{}
	var lines []string
	for _, violation := range violations {
		broken[violation.Check] = true
		lines = append(lines, violation.String())
	}
	return failed("run attune-executor queue repair; what stays is a fault, report it with these lines",
		"%d of %d checks of consistency found something", len(broken), len(doctor.Checks())).with(lines...), nil
}

// alive are the live replicas.
func (v *visit) alive() []monitor.Replica {
	if v.replicas == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.replicas.List), func(r monitor.Replica) bool { return !living(r) })
}

// lookWorkQueues counts the items of an adopted installation's work queues, which the engine does
// not dispatch.
func lookWorkQueues(ctx context.Context, v *visit) (Finding, error) {
	found, err := v.view.WorkQueues(ctx)
	if err != nil {
		return Finding{}, err
	}
	if len(found.List) == 0 {
		return passed("no item of a work queue waits"), nil
	}
	lines := make([]string, 0, len(found.List))
	for _, q := range found.List {
		lines = append(lines, q.Ref+": "+q.Words(found.At))
	}
	return failed("this engine does not dispatch work queues: the items wait for an engine that does", "%s",
		found.Words()).with(lines...), nil
}
