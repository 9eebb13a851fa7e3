package main

import (
	"errors"
	"math"
)

// fitFrom is the least size that counts: below it a run is too short for the resolution of processor
// time.
const fitFrom = 100

// A fit has the microseconds of the servers' processors that each part of a work costs.
type fit struct {
	mode  string
	costs []float64
	from  int // measurements
}

// fitServers fits the costs to the measurements of a mode without an added round trip, by least
// squares of the relative error. No cost is negative.
func fitServers(mode string, all []measurement) (fit, error) {
	var rows [][]float64
	for _, m := range all {
		w, known := workOf(m)
		if !known || !fitted(m) || modeOf(m.setting) != mode || !isNear(m.setting) {
			continue
		}
		row := w.parts()
		for i := range row {
			row[i] /= m.columns[serversColumn]
		}
		rows = append(rows, row)
	}
	f := fit{mode: mode, from: len(rows)}
	free := make([]bool, len(partNames()))
	for i := range free {
		for _, row := range rows {
			free[i] = free[i] || row[i] > 0
		}
	}
	for range free {
		costs, err := leastSquares(rows, free)
		if err != nil {
			return f, err
		}
		f.costs = costs
		worst := 0
		for i, c := range costs {
			if c < costs[worst] {
				worst = i
			}
		}
		if costs[worst] >= 0 {
			return f, nil
		}
		free[worst] = false
	}
	return f, errors.New("no fit")
}

// fitted reports whether the model's costs are fitted to measurements such as m and compared with them.
// A fill of a cache is one operation, so that it has to be longer.
func fitted(m measurement) bool {
	least := fitFrom
	if m.curve == "cache" {
		least *= fitFrom
	}
	return m.size >= least && m.columns[serversColumn] > 0 && !isFirst(m)
}

// of returns what the fit predicts of a work.
func (f fit) of(w work) float64 {
	sum := 0.0
	for i, amount := range w.parts() {
		sum += amount * f.costs[i]
	}
	return sum
}

// leastSquares returns x with which the rows times x come closest to 1. An x that isn't free is 0.
func leastSquares(rows [][]float64, free []bool) ([]float64, error) {
	var columns []int
	for i, ok := range free {
		if ok {
			columns = append(columns, i)
		}
	}
	n := len(columns)
	if len(rows) < n || n == 0 {
		return nil, errors.New("too few measurements for a fit")
	}
	equations := make([][]float64, n)
	for i, a := range columns {
		equations[i] = make([]float64, n+1)
		for _, row := range rows {
			for j, b := range columns {
				equations[i][j] += row[a] * row[b]
			}
			equations[i][n] += row[a]
		}
	}
	solved, err := solve(equations)
	x := make([]float64, len(free))
	for i, a := range columns {
		x[a] = solved[i]
	}
	return x, err
}

// solve returns the solution of n linear equations, each with its right side in the last place.
func solve(equations [][]float64) ([]float64, error) {
	n := len(equations)
	x := make([]float64, n)
	for i := range n {
		pivot := i
		for j := i; j < n; j++ {
			if math.Abs(equations[j][i]) > math.Abs(equations[pivot][i]) {
				pivot = j
			}
		}
		equations[i], equations[pivot] = equations[pivot], equations[i]
		if equations[i][i] == 0 {
			return x, errors.New("the measurements don't tell the costs apart")
		}
		for j := i + 1; j < n; j++ {
			factor := equations[j][i] / equations[i][i]
			for k := i; k <= n; k++ {
				equations[j][k] -= factor * equations[i][k]
			}
		}
	}
	for i := n - 1; i >= 0; i-- {
		x[i] = equations[i][n]
		for j := i + 1; j < n; j++ {
			x[i] -= equations[i][j] * x[j]
		}
		x[i] /= equations[i][i]
	}
	return x, nil
}
