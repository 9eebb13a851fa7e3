// Package soak holds a test that keeps one client at work for long. Meanwhile its connections are
// cut, its sessions end, and its servers and credentials change. The test measures goroutines,
// heap and file descriptors each second, and fails if one of them keeps growing.
//
//	SOAK_SECONDS=600 go test -C lab -count=1 -v -timeout=20m -run='^TestSoak$' ./soak
//
// The measurements are written to .cache/soak/soak.csv.
package soak
