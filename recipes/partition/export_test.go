package partition

// The tests of what members get compare it with the division itself.
var (
	Divide   = divide
	DigestOf = digestOf
	Names    = names
	Owners   = owners
)
