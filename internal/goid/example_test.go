package goid_test

import (
	"fmt"

	"github.com/docent-go/docent/internal/goid"
)

func ExampleID() {
	here := goid.ID()
	there := make(chan uint64)
	go func() { there <- goid.ID() }()
	fmt.Println(here == goid.ID(), here == <-there)
	// Output: true false
}
