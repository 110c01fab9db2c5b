package config

import (
	"cmp"
	"strings"
)

// Entry is one key with the value in force.
type Entry struct {
	// Key is the full key, such as executor.queue.max_queue_length.
	Key string `json:"key" yaml:"key"`
	// Value has no secrets: they are masked.
	Value string `json:"value" yaml:"value"`
	// Source is default, FILE:LINE, or the environment variable.
	Source string `json:"source" yaml:"source"`
	// Note explains a default, such as one that differs from the published default.
	Note string `json:"note,omitempty" yaml:"note,omitempty"`
}

// Set reports whether the operator set the value: it is neither the default nor derived from other keys.
func (e Entry) Set() bool { return e.Source != "default" && !strings.HasPrefix(e.Source, "derived ") }

// Explain lists every key in the order of the documentation.
func (c *Config) Explain() []Entry {
	var entries []Entry
	for _, s := range c.settings() {
		entry := Entry{Key: s.key, Value: s.text(), Source: c.Source(s.key)}
		if entry.Source == "default" {
			entry.Note = s.tag.Get("note")
			if published := s.tag.Get("published"); published != "" {
				entry.Note = "the published default is " + published
			}
		}
		switch s.tag.Get("secret") {
		case "url":
			entry.Value = MaskURL(entry.Value)
		case "value":
			if entry.Value != "" {
				entry.Value = mask
			}
		}
		entries = append(entries, entry)
	}
	return entries
}

// Source names the origin of a key's value: default, FILE:LINE, or the environment variable.
func (c *Config) Source(key string) string { return cmp.Or(c.sources[key], "default") }
