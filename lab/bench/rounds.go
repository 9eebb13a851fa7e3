package main

import (
	"fmt"
	"strings"
)

// rounds returns a contender's rounds in the format of Go's benchmarks, a line for each round.
func (r *report) rounds(contender string) string {
	var text strings.Builder
	for _, s := range r.Settings {
		setting := strings.NewReplacer(", ", "-", " ", "-").Replace(s.Setting)
		for _, sc := range s.Scenarios {
			for _, f := range sc.Contenders {
				if f.Contender != contender {
					continue
				}
				for i := range f.RoundsP50 {
					round := figures{P50: f.RoundsP50[i], Rate: f.RoundsRate[i]}
					fmt.Fprintf(&text, "BenchmarkScenario/%s/%s 1 %.0f ns/op %.3f requests/op %.1f allocs/op\n",
						sc.Name, setting, round.cost(sc.ByRate), f.RoundsRequests[i], f.RoundsAllocs[i])
				}
			}
		}
	}
	return text.String()
}
