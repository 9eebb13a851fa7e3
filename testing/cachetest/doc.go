// Package cachetest checks what package cache guarantees, under faults.
//
//	func TestGuarantees(t *testing.T) { cachetest.Run(t, cache.New) }
//
// One client writes a tree at random, in single requests and in transactions. Each write has data of
// its own, so the test knows every state that the tree has had. Meanwhile connections break, replies
// are lost, servers refuse and sessions expire for the client of a cache. [Run] fails the test unless
//
//   - each settled snapshot is a state that the tree had, and no earlier one than the snapshot before
//     (one moment);
//   - no znode of a snapshot that is not settled is older than it was in the snapshot before (truth);
//   - the events fit one another, parents come before children, no event removes a znode that exists,
//     and replaying them gives the cache (every change told);
//   - after Sync the cache has the tree as it is (complete).
//
// A [Journal] records and checks the events of any cache.
//
// Stability: internal to docent.
package cachetest
