// Package scc finds the cycles of a graph.
package scc

// Components returns the strongly connected parts of a graph, by Tarjan's algorithm. next has what each
// vertex leads to. A part comes after those that it leads to. Of a cycle, the vertices are in its order, backwards.
func Components(next [][]int) [][]int {
	n := len(next)
	t := tarjan{next: next, index: make([]int, n), low: make([]int, n), onStack: make([]bool, n)}
	for i := range next {
		if t.index[i] == 0 {
			t.visit(i)
		}
	}
	return t.found
}

type tarjan struct {
	next    [][]int
	index   []int // in the order of visits, from 1; 0 before
	low     []int // the least index that is reached and on the stack
	onStack []bool
	stack   []int
	visits  int
	found   [][]int
}

func (t *tarjan) visit(i int) {
	t.visits++
	t.index[i], t.low[i] = t.visits, t.visits
	t.stack, t.onStack[i] = append(t.stack, i), true
	for _, b := range t.next[i] {
		if t.index[b] == 0 {
			t.visit(b)
			t.low[i] = min(t.low[i], t.low[b])
		} else if t.onStack[b] {
			t.low[i] = min(t.low[i], t.index[b])
		}
	}
	if t.low[i] == t.index[i] {
		t.pop(i)
	}
}

// pop takes the part that begins at i off the stack.
func (t *tarjan) pop(i int) {
	var part []int
	for {
		last := t.stack[len(t.stack)-1]
		t.stack, t.onStack[last] = t.stack[:len(t.stack)-1], false
		part = append(part, last)
		if last == i {
			t.found = append(t.found, part)
			return
		}
	}
}
