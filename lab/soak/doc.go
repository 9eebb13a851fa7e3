// Package soak holds a test that keeps one client at work for as long as it is told. Meanwhile its
// connections are cut, its sessions end, and its servers and credentials change. The test measures
// goroutines, heap and file descriptors each second, and fails if one of them keeps growing.
//
//	make soak SOAK=72h
//
// Each measurement is appended to .cache/soak/soak.csv, and .cache/soak/report.md has the result so far: it
// is written each minute, and at the end. An interrupt ends the test early, with the result of what was
// measured. The test's own memory is bounded, however long it runs.
package soak
