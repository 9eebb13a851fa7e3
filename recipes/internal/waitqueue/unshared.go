//go:build docent_plain

package waitqueue

func newAttempt() *Attempt {
	a := new(Attempt)
	a.shortcuts = plain{a}
	return a
}
