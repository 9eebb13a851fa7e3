package history

import (
	"strconv"
	"strings"
)

// semaphorePrefix begins the name of a semaphore's model. The number of permits follows.
const semaphorePrefix = "semaphore-"

// Semaphore is n permits. A lease is of one or several of them, and the entry says of how many. An
// entry for a semaphore is Shared. Fences give the order of the grants.
func Semaphore(n int) Model { return Model{Name: semaphorePrefix + strconv.Itoa(n), permits: n} }

// semaphoreOf returns the semaphore's model with the name.
func semaphoreOf(name string) (Model, bool) {
	number, ok := strings.CutPrefix(name, semaphorePrefix)
	n, err := strconv.Atoi(number)
	return Semaphore(n), ok && err == nil && n > 0
}

// permits returns how many permits are held.
func (s state) permits() int {
	n := 0
	for _, h := range s.holders {
		n += h.permits()
	}
	return n
}

// permits returns how many permits the step is of.
func (s step) permits() int {
	n := 0
	for _, ref := range s.stakes {
		n += ref.Permits
	}
	return n
}
