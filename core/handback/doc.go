// Package handback gives an adopted database back to the executor of the installation, so that
// it continues at once with the running and waiting executions.
//
// That executor counts an execution as running only by an active entry in the admission tables,
// and only messages wake it. HandBack writes the entries of executions that hold slots or wait,
// and publishes every due message: the contents of the outbox, a request for each execution to
// schedule, and the end of each workflow child that its workflow has not processed. It removes
// nothing of the schema; migrations.Down does that next.
//
// Settings that the other executor does not know (pauses, overrides, rates, priorities, due times
// of retries) have no effect afterwards. Read lists them beforehand.
package handback
