package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"math/rand/v2"
)

// uses counts pairs of files of which the first uses a name that the second declares. back counts
// the pairs that run against the best order of the files that was found, so it is an upper bound.
func uses(fset *token.FileSet, files []*ast.File) (arrows, back int) {
	index := make(map[string]int, len(files))
	for i, f := range files {
		index[fset.File(f.Package).Name()] = i
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{
		Error:    func(error) {}, // what other packages declare is not known, and not needed
		Importer: noImports{},
	}
	_, _ = config.Check("measured", fset, files, info) // its errors were given to Error
	graph := make([][]bool, len(files))
	for i := range graph {
		graph[i] = make([]bool, len(files))
	}
	for ident, object := range info.Uses {
		if !object.Pos().IsValid() {
			continue
		}
		from, to := index[fset.File(ident.Pos()).Name()], index[fset.File(object.Pos()).Name()]
		if from != to && !graph[from][to] {
			graph[from][to] = true
			arrows++
		}
	}
	return arrows, backward(graph)
}

// noImports knows no package: names of other packages stay unresolved.
type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, "")
	p.MarkComplete()
	return p, nil
}

// starts is from how many orders backward begins. The first is the given order.
const starts = 50

// backward orders the files so that few arrows run against the order, and returns how many
// do. To find the least is the feedback arc set problem; this takes the best of several searches.
func backward(graph [][]bool) int {
	order := make([]int, len(graph))
	for i := range order {
		order[i] = i
	}
	shuffles := rand.New(rand.NewPCG(0, 0)) // always the same, so that figures compare
	least := search(graph, order)
	for range starts - 1 {
		shuffles.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		least = min(least, search(graph, order))
	}
	return least
}

// search moves one file at a time to its best place until no move helps, and returns how many
// arrows run against the order then.
func search(graph [][]bool, order []int) (back int) {
	for improved := true; improved; {
		improved = false
		for at := range order {
			if to := bestPlace(graph, order, at); to != at {
				move(order, at, to)
				improved = true
			}
		}
	}
	for i, user := range order {
		for _, earlier := range order[:i] {
			if graph[user][earlier] {
				back++
			}
		}
	}
	return back
}

// bestPlace returns where in the order the file at the given place has the fewest arrows
// against the order.
func bestPlace(graph [][]bool, order []int, at int) int {
	file := order[at]
	best, gain, sum := at, 0, 0
	for to := at - 1; to >= 0; to-- { // to pass ahead of order[to]
		sum += gained(graph, file, order[to])
		if sum > gain {
			best, gain = to, sum
		}
	}
	sum = 0
	for to := at + 1; to < len(order); to++ { // to fall behind order[to]
		sum += gained(graph, order[to], file)
		if sum > gain {
			best, gain = to, sum
		}
	}
	return best
}

// gained returns how many backward arrows go if first passes ahead of second.
func gained(graph [][]bool, first, second int) int {
	n := 0
	if graph[first][second] {
		n++
	}
	if graph[second][first] {
		n--
	}
	return n
}

func move(order []int, from, to int) {
	file := order[from]
	if to < from {
		copy(order[to+1:from+1], order[to:from])
	} else {
		copy(order[from:to], order[from+1:to+1])
	}
	order[to] = file
}
