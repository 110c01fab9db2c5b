package triage_test

import (
	"context"
	"slices"

	"github.com/attune-go/attune/core/triage"
)

// each acts on one dead letter after the other, as act does.
func each(
	operator *triage.Triage, ctx context.Context, ids []int64, reason string,
	do func(context.Context, int64) (int64, error),
) (*triage.RunReceipt, error) {
	run := triage.Run{Lock: triage.DeadLettersLock}
	for _, id := range ids {
		run.Steps = append(run.Steps, triage.Step{
			Rows: []int64{id}, Do: func(ctx context.Context, _ string) (triage.Outcome, error) {
				row, err := do(ctx, id)
				return triage.Outcome{Done: 1, Audits: []int64{row}}, err
			},
		})
	}
	return operator.Run(ctx, run, reason)
}

func requeueMany(
	operator *triage.Triage, ctx context.Context, ids, anyway []int64, reason string,
) (*triage.RunReceipt, error) {
	return each(operator, ctx, ids, reason, func(ctx context.Context, id int64) (int64, error) {
		r, err := operator.Requeue(ctx, id, slices.Contains(anyway, id), reason)
		if err != nil {
			return 0, err
		}
		return r.Audit, nil
	})
}

func sendDeadLetters(
	operator *triage.Triage, ctx context.Context, ids []int64, exchange, key, reason string,
) (*triage.RunReceipt, error) {
	return each(operator, ctx, ids, reason, func(ctx context.Context, id int64) (int64, error) {
		return operator.SendDeadLetter(ctx, id, exchange, key, reason)
	})
}

func returnDeadLetters(
	operator *triage.Triage, ctx context.Context, ids []int64, reason string,
) (*triage.RunReceipt, error) {
	return each(operator, ctx, ids, reason, func(ctx context.Context, id int64) (int64, error) {
		return operator.ReturnDeadLetter(ctx, id, reason)
	})
}
