package tool

// RedactText is what the tests look at by itself.
var RedactText = redact
