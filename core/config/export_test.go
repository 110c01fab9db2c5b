package config

import (
	"errors"
	"time"
)

// FileVariants are the keys with the file of a secret, for the tests of the documentation.
var FileVariants = fileVariants

// AssignDurations stores a text in every setting with a duration, and returns what they hold then.
func AssignDurations(c *Config, text string) (all []time.Duration, err error) {
	for _, s := range c.settings() {
		if s.isDuration() {
			err = errors.Join(err, s.assign(text))
			all = append(all, time.Duration(s.value.Int()))
		}
	}
	return all, err
}
