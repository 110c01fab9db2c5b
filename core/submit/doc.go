// Package submit requests executions and waits for their end, for the command line, the HTTP API and the load
// generator.
//
// A request is one transaction: the execution's row and its execution.requested message in the outbox. Once
// Request returns, the execution is guaranteed: the relay of any replica publishes the message, even after a
// failure of the broker or of this process. Parameters are stored unchanged; the action's defaults apply when
// it runs, and a request without parameters stores none. Secret parameters, as marked by the action's schema,
// are encrypted and stored apart in the same transaction; markers replace them in the row and in the message.
//
// An unknown action is an UnknownActionError with the nearest ref. Parameters that violate the schema are an
// InvalidParamsError with all mistakes. Secret parameters without a key are refused (ErrSealed): secrets are
// never stored in the clear. A commit with an unknown outcome is returned as such (store.ClassUnknown) and
// never retried here, so that nothing is requested twice.
package submit
