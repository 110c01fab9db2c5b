// Package handback gives an adopted database back to the executor of the installation, which continues at once
// with the running and queued executions.
//
// That executor counts an execution as running only by an active entry in the admission tables, and starts
// work only on a message. HandBack writes the entries of executions with a slot and of queued ones. It
// publishes every due message: those in the outbox, a request for each execution to schedule, and the end of
// each workflow child that its workflow has not processed. It removes nothing of the schema; migrations.Down
// does that next.
//
// Settings that the other executor does not know (pauses, overrides, rates, priorities, due times of retries)
// have no effect afterwards. Read lists them beforehand.
package handback
