// Package gauge shows the state of the queues as Prometheus metrics.
//
// A loop reads the busiest actions every few seconds and keeps the answer; a scrape sends what was
// read last and touches no database. At most monitor.BusiestActions actions are shown, so that a
// scrape stays small however many actions and groups there are, and at most monitor.SharedLimits
// limits of packs and of everything. Every replica shows the same.
//
// On failure the last answer is shown for a minute; after that nothing is, since
// a number that is not known is not zero.
package gauge
