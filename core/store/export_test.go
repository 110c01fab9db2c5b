package store

// OpenAdjusted is Open with a changed pool, so that a test can count network traffic.
var OpenAdjusted = open
