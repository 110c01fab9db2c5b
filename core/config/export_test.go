package config

// FileVariants are the keys with the file of a secret, for the tests of the documentation.
var FileVariants = fileVariants
