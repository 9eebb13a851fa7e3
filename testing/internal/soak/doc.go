// Package soak holds a test that keeps one client at work for long while its connections are
// cut, its sessions end, its servers and its credentials change. It measures goroutines, heap and
// file descriptors each second, and fails if one of them keeps growing.
//
//	SOAK_SECONDS=600 go test -count=1 -v -timeout=20m -run='^TestSoak$' ./testing/internal/soak
//
// The measurements are written to .cache/soak/soak.csv. Package scripts/plot draws them.
package soak
