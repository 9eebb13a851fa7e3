package main

// The tests need these modules; each line goes when the first test imports its module.
import (
	_ "github.com/creack/pty"
	_ "go.uber.org/goleak"
	_ "pgregory.net/rapid"
)
