// Package handback gives an adopted database back to the executor of the
// installation, so that it goes on at once with what runs and what waits.
//
// That executor counts an execution as running only by an active entry in the
// admission tables, and it wakes up only by messages. HandBack writes the
// entries of the executions that hold slots or wait, and publishes every message
// that is due: what the outbox still holds, a request for each execution that
// must be scheduled, and the end of each workflow child that no workflow has
// heard of. Nothing of the schema is removed here; migrations.Down does that next.
//
// What the other executor knows nothing of (pauses, overrides, rates,
// priorities, due times of retries) takes no effect afterwards. Read lists it
// beforehand.
package handback
