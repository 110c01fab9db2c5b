// Package alerting evaluates the alert rules and keeps the table of alerts.
//
// config.Measures declares each measure once: its name, unit, texts, metric and source. This package reads
// the measures (readings.go), judges them by the rules (judge.go), and exports them as metrics and as a
// rules file for Prometheus.
//
// A loop on every replica measures; one replica at a time judges and writes. An alert's row is opened when
// its condition first holds, fires when it has held for as long as the rule requires, and clears when it
// no longer holds. A condition that ends earlier leaves no row. Times are the database's and the start is in the
// row, so a restart or another replica continues the same alert. A rule and a target have one open row.
// A Reader shows what is stored, with its age; only that no replica is alive it finds itself.
//
// An unknown measure neither fires nor clears an alert. The rule unmeasured reports it.
//
// If the database fails, the tick fails and the next one tries again. No alert is assessed by half a snapshot.
package alerting
