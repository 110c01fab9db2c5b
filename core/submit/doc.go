// Package submit requests executions and waits for their end, for the command
// line, the HTTP API and the load generator.
//
// A request is one transaction: the execution's row and its execution.requested message in the
// outbox. Once Request returns the execution will happen, whatever happens to the broker or to this
// process: the relay of a replica publishes the message. Parameters are stored unchanged; the
// action's defaults are applied when it runs, and a request without parameters stores none. Secret
// parameters, as marked by the action's schema, are encrypted and stored apart, in the same
// transaction; markers replace them in the row and in the message.
//
// An unknown action is an UnknownActionError that names the nearest one.
// Parameters that do not fit the schema are an InvalidParamsError that lists all
// mistakes, and secret ones without a key are refused (ErrSealed): nothing secret
// is ever stored in the clear. A
// commit whose outcome is unknown is returned as such (store.ClassUnknown) and
// never repeated here, so that nothing is requested twice.
package submit
