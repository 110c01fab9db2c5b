package tracing

import "context"

type contextKey struct{}

// With returns a context of work that a client has requested in a trace of its own.
func With(ctx context.Context, client Context) context.Context {
	return context.WithValue(ctx, contextKey{}, client)
}

// From returns the client's position of With, the zero Context without one.
func From(ctx context.Context) Context {
	client, _ := ctx.Value(contextKey{}).(Context)
	return client
}
