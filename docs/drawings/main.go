// Drawings makes the drawings of the documentation: `make drawings` writes them to
// docs/img, and a test fails where one there is not what this program makes.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// A drawing is one file in docs/img.
type drawing struct {
	name string
	draw func() string
}

func drawings() []drawing {
	return []drawing{
		{"lease-clock.svg", leaseClock},
		{"hand-off.svg", handOff},
		{"queues.svg", queues},
	}
}

func main() {
	dir := filepath.Join("docs", "img")
	for _, d := range drawings() {
		if err := os.WriteFile(filepath.Join(dir, d.name), []byte(d.draw()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "drawings:", err)
			os.Exit(1)
		}
	}
}
