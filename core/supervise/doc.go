// Package supervise gives everything that owns a goroutine the same life: a
// Service is started once, says when it has started, and is stopped by a call
// that returns only when nothing of it runs any more.
//
// The pieces are Base, which makes a type a safe Service by embedding; Loop, a
// Service that repeats one function for ever; and Group, which starts services
// in order and stops them in the opposite order.
//
// A service moves one way only:
//
//	new ──Start──▶ starting ──▶ started ──Stop──▶ stopping ──▶ stopped
//	 ▲                │ setup failed
//	 └────────────────┘
//
// Start may be tried again after it failed. A stopped service stays stopped, even if Stop came
// before Start; so whenever the two race, the outcome is that nothing runs.
//
// The context given to Start bounds the start only. Its values live on in the context that the
// service runs with, its cancellation does not: the one way to end a service is Stop, so that a
// signal cannot end services in a random order. Inside a service context.Cause tells a stop
// (ErrStopping) from a deadline.
package supervise
