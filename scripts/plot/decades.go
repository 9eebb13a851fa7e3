package main

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// decades are the ticks of a logarithmic axis: the powers of ten.
type decades struct{}

// Ticks returns those from least to most.
func (decades) Ticks(least, most float64) []plot.Tick {
	const rounding = 1e-9
	var ticks []plot.Tick
	for power := math.Ceil(math.Log10(least) - rounding); power <= math.Log10(most)+rounding; power++ {
		value := math.Pow(10, power)
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', -1, 64)})
	}
	return ticks
}
