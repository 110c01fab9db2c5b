// Package alerting evaluates the alert rules and keeps the table of alerts.
//
// A loop on every replica measures what the rules watch. One replica at a time
// judges them and writes: the row of an alert is opened when its condition first
// holds, fires when it has held for as long as the rule asks, and is cleared when
// it holds no more; a condition that never held for so long leaves nothing behind.
// All times are the database's, and since is in the row, so neither a restart nor
// a hand-over to another replica begins anything anew. There is one open row for a
// rule and a target, however many replicas there are.
//
// A measure that cannot be read neither fires nor clears. That it cannot is an
// alert itself, by the rule unmeasured.
//
// What was measured is shown as metrics too, from which the rules file for
// Prometheus is made, by the same rules.
//
// On failure of the database the tick fails, and the next ones try again; nothing
// is judged by half of a snapshot.
package alerting
