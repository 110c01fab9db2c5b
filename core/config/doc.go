// Package config reads the configuration of the executor, the worker and the dashboard. Environment variables of the
// form ATTUNE__SECTION__KEY override one YAML file, which overrides the built-in defaults.
//
// Every key is honoured, refused or named in a warning. An unknown key of our sections, a wrong type and a value out
// of range are errors with the key, its place and the remedy. Config.Warnings lists sections and keys of other Attune
// services and published keys without effect. Explain shows every key with its value and source, secrets masked.
//
// A duration is a plain number in the unit of the key's name (…_ms milliseconds, otherwise seconds) or a form such
// as 1m30s or 7d. A secret can be in a file, named by the variant of its key that ends in _file.
package config
