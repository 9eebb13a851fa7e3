package main

import (
	"errors"
	"math"
	"slices"
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
// squares of the relative error. No cost is negative. If one has the costs of one server, those of
// reads and of their replies are not fitted, because one server alone answers a read.
func fitServers(mode string, all []measurement, one []float64) (fit, error) {
	free := make([]bool, len(partNames()))
	given := make([]float64, len(free))
	for i, ofReads := range readParts() {
		if ofReads && one != nil {
			given[i] = one[i]
		}
	}
	var rows [][]float64
	var targets []float64
	for _, m := range all {
		w, known := workOf(m)
		if !known || !fitted(m) || modeOf(m.setting) != mode || !isNear(m.setting) {
			continue
		}
		row := w.parts()
		for i := range row {
			row[i] /= m.columns[serversColumn]
			free[i] = free[i] || row[i] > 0 && given[i] == 0
		}
		rows, targets = append(rows, row), append(targets, 1-product(row, given))
	}
	f := fit{mode: mode, costs: given, from: len(rows)}
	for range free {
		costs, err := leastSquares(rows, targets, free)
		if err != nil {
			return f, err
		}
		worst := slices.Index(costs, slices.Min(costs))
		if costs[worst] >= 0 {
			for i, c := range costs {
				f.costs[i] += c
			}
			return f, nil
		}
		free[worst] = false
	}
	return f, errors.New("no fit")
}

func product(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// fitted reports whether the model's costs are fitted to measurements such as m and compared with
// them. A run of few waiters or locks has few operations, at a new server whose Java compiles. A fill of a
// cache is one operation.
func fitted(m measurement) bool {
	least := map[string]int{"waiters": 30 * fitFrom, "held": 100 * fitFrom, "cache": 100 * fitFrom}[m.curve]
	return m.size >= max(least, fitFrom) && m.columns[serversColumn] > 0
}

// of returns what the fit predicts of a work.
func (f fit) of(w work) float64 { return product(w.parts(), f.costs) }

// leastSquares returns x with which the rows times x come closest to the targets. An x that isn't free
// is 0.
func leastSquares(rows [][]float64, targets []float64, free []bool) ([]float64, error) {
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
		for k, row := range rows {
			for j, b := range columns {
				equations[i][j] += row[a] * row[b]
			}
			equations[i][n] += row[a] * targets[k]
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
