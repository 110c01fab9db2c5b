package triage

import "context"

// progressKey is where a context carries who is told.
type progressKey struct{}

// WithProgress has acts of many steps tell after each of them how many rows are
// done, of how many; a total of 0 is unknown. tell is called by the goroutine that
// acts and must be quick.
func WithProgress(ctx context.Context, tell func(done, total int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// Progress tells whoever a context was given for, by WithProgress, how far an act
// of many acts has come.
func Progress(ctx context.Context, done, total int64) { progress(ctx, int(done), int(total)) }

// progress tells how far an act has come, if anybody wants to know.
func progress(ctx context.Context, done, total int) {
	if tell, ok := ctx.Value(progressKey{}).(func(done, total int64)); ok {
		tell(int64(done), int64(total))
	}
}
