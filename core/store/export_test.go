package store

// OpenAdjusted is Open with a hand on the pool, so that a test can count what
// goes over the network.
var OpenAdjusted = open
