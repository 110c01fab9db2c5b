package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/attune-go/attune/core/admission"
	"github.com/attune-go/attune/core/lifecycle"
	"github.com/attune-go/attune/core/store"
)

// onlyReports returns the reports of a batch that has nothing else to do, or nil.
func onlyReports(steps []Step) []Report {
	var reports []Report
	for _, step := range steps {
		switch step := step.(type) {
		case *CompletionStep:
			reports = append(reports, step.reports...)
		case *RequestStep:
			if len(step.ids) > 0 {
				return nil
			}
		case FillStep:
			if !step.Optimistic() {
				return nil
			}
		default:
			return nil
		}
	}
	return reports
}

// releaseAtOnce runs a batch that only releases executions of open queues in one round trip: what the
// messages say decides, and the guards of the statements verify it. It reports whether it did. Otherwise
// nothing is written, and the batch must read what the messages are about: an execution failed, belongs
// to a workflow, or was released before, or executions wait for what it returns.
func (s *Scheduler) releaseAtOnce(ctx context.Context, steps []Step) (result Result, done bool, err error) {
	reports := onlyReports(steps)
	if len(reports) == 0 || s.cfg.Traces != nil {
		return result, false, nil
	}
	rules := s.rules.ruleSet()
	n := len(reports)
	ids, states := make([]int64, n), make([]int64, n)
	queues := make(map[int64]int)
	actions := make(map[int64]int64, 1) // by queue
	slices.SortFunc(reports, func(a, b Report) int { return cmp.Compare(a.Execution, b.Execution) })
	for i, report := range reports {
		rule, ok := rules.find(&report.ActionID, report.ActionRef)
		if !ok || !rule.plain() || rule.Workflow || !rule.Limits.Queue.Unlimited || report.Unreported ||
			report.Said != lifecycle.StatusCompleted {
			return result, false, nil
		}
		queue, ok := s.admission.Known(admission.Key{ActionID: rule.ActionID})
		if !ok {
			return result, false, nil
		}
		ids[i], states[i] = report.Execution, queue
		queues[queue]++
		actions[queue] = rule.ActionID
	}
	if !s.memory.open(queues) || s.memory.refusedLately(queues, s.cfg.Now()) {
		return result, false, nil
	}
	var released *store.Result[store.ReleaseCompletedRow]
	err = s.store.Once(ctx, "batch", func(ctx context.Context, tx *store.Tx) error {
		p := tx.Pipeline()
		p.Exec(store.BriefLocks, admission.BriefLockTimeout)
		admission.ReleaseOpen(p, queues, actions, s.cfg.WithoutStats)
		released = store.Many[store.ReleaseCompletedRow](p, store.ReleaseCompleted, rules.epoch, ids, states)
		if err := commit(ctx, p); err != nil {
			return fmt.Errorf("release %d executions: %w", n, err)
		}
		return nil
	})
	switch {
	case refused(err), store.IsLockTimeout(err):
		s.memory.refuse(queues, s.cfg.Now())
		return result, false, nil
	case err != nil:
		return result, false, err
	}
	for _, row := range released.Rows() {
		for i, ref := range row.ActionRefs {
			s.metrics.ran(ref, seconds(row.Ran[i]), seconds(row.Waited[i]))
		}
	}
	return Result{Released: n}, true, nil
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
