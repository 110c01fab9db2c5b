package config

import (
	"net/url"
	"regexp"
	"strings"
)

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

// Set reports whether the value was given, and is not the default or derived from others.
func (e Entry) Set() bool { return e.Source != "default" && !strings.HasPrefix(e.Source, "derived ") }

const mask = "***"

// Explain lists every key with the value in force and where it came from, in
// the order of the documentation.
func (c *Config) Explain() []Entry {
	var entries []Entry
	for _, s := range c.settings() {
		entry := Entry{Key: s.key, Value: s.text(), Source: c.sources[s.key]}
		if entry.Source == "" {
			entry.Source = "default"
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

// Source says where the value of a key came from: default, FILE:LINE, or the
// environment variable.
func (c *Config) Source(key string) string {
	if source := c.sources[key]; source != "" {
		return source
	}
	return "default"
}

var passwordWord = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)`)

// MaskURL hides the passwords in a URL or in a keyword connection string. What
// cannot be read is hidden whole.
func MaskURL(address string) string {
	masked := passwordWord.ReplaceAllString(address, "${1}"+mask)
	parsed, err := url.Parse(masked)
	if err != nil {
		return mask
	}
	if _, has := parsed.User.Password(); !has {
		return masked
	}
	// Redacted writes xxxxx; the rest of the address stays as it was written.
	name := parsed.User.Username()
	parsed.User = url.User(name)
	return replaceUser(parsed.String(), url.User(name).String())
}

func replaceUser(address, user string) string {
	return regexp.MustCompile(regexp.QuoteMeta("//"+user+"@")).ReplaceAllLiteralString(address, "//"+user+":"+mask+"@")
}
