package main

import (
	"os"
	"testing"
)

func TestSum(t *testing.T) {
	if got := sum(1, 2); got != 3 {
		t.Errorf("sum: %d, want 3", got)
	}
}

func TestSumOfNegatives(t *testing.T) {
	if os.Getenv("VICTIM") != "thorough" {
		t.Skip("not for the first stage")
	}
	if got := sum(-1, -2); got != -3 {
		t.Errorf("sum: %d, want -3", got)
	}
}
