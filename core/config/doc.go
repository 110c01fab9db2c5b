// Package config reads the configuration of the executor, the worker and the
// dashboard: one YAML file, overridden by environment variables of the form
// ATTUNE__SECTION__KEY, over built-in defaults.
//
// What it promises: every key is either honoured or named. An unknown key in a
// section that is ours, a value of the wrong type and a value out of range are
// refused in one line that names the key, where it was set, and what would be
// right. Sections and keys that belong to other Attune services are accepted
// and listed in Config.Warnings, as are published keys that have no effect
// here. Explain shows every key with its value and source,
// secrets masked.
//
// Durations take a plain number in the unit of the key's name (…_ms
// milliseconds, otherwise seconds) or Go syntax such as 1m30s. Every secret has
// a variant whose name ends in _file and names a file that holds it.
package config
