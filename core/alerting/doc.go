// Package alerting says what is wrong: it reads what the alert rules watch, judges it, and keeps the table of
// alerts.
//
// A measure is declared once, in config.Measures: its name, unit, texts and metric, and the servers that it is
// read from. This package reads the measures (readings.go), judges them by the rules (judge.go), and shows them
// as metrics and as a rules file for Prometheus. The overview and its findings come from the same judgement.
//
// A loop on every replica measures. One replica at a time judges and writes: the row of an alert is opened when
// its condition first holds, fires when it has held for as long as the rule asks, and is cleared when it holds
// no more; a condition that never held for so long leaves nothing behind. All times are the database's, and
// since is in the row, so neither a restart nor a hand-over to another replica begins anything anew. There is
// one open row for a rule and a target, however many replicas there are. While no replica evaluates the rules,
// a Reader judges them itself.
//
// A measure that cannot be read neither fires nor clears. That it cannot is an alert itself, by the rule
// unmeasured.
//
// On failure of the database the tick fails, and the next ones try again; nothing is judged by half of a
// snapshot.
package alerting
