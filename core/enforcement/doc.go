// Package enforcement turns enforcements into executions: it takes
// enforcement.created, and makes the execution of the rule's action in the round
// that admits it and hands it over.
//
// # Promises
//
// An enforcement that is created becomes processed together with its one execution,
// or disabled with the reason in enforcement.error, in one transaction and once,
// however often and to however many replicas its message is delivered (invariants
// S10, S13). Any other is left alone. The execution acts for the rule's owner, or
// for the system where there is none, with the permission sets of the rule or else
// of its action; the secrets of its parameters go with it, encrypted as they are.
//
// # On failure
//
// A rule that is gone, disabled, or has lost its action or trigger, disables the
// enforcement: it is never an error that comes back. An enforcement that has no row
// is reported to the caller, since its message may have come before its commit. A
// row that somebody else changed meanwhile has the round run again on new facts.
package enforcement
