package main

import "testing"

func TestSum(t *testing.T) {
	if got := sum(1, 2); got != 3 {
		t.Errorf("sum: %d, want 3", got)
	}
}
