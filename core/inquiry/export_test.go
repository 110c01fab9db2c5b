package inquiry

// Parse reads the question of a result.
var Parse = parse
