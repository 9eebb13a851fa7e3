package main

import "math"

// fitFrom is the least size that an exponent is taken from: below it what is constant rules.
const fitFrom = 10

// exponent returns b of the power law a × size^b through the values of the points of sizes from
// fitFrom on. It is fitted by least squares of the logarithms. It is NaN of fewer than three values.
// A value that isn't positive is left out.
func exponent(points []point, value func(point) float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		v := value(p)
		if p.Size < fitFrom || !(v > 0) {
			continue
		}
		x, y := math.Log(float64(p.Size)), math.Log(v)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	if n < 3 {
		return math.NaN()
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
