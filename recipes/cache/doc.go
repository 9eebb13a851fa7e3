// Package cache keeps a part of the tree in memory and notifies of what changes in it.
//
//	routes, err := cache.New(client, "/config/routes")
//	…
//	defer routes.Close()
//	if err := routes.Ready(ctx); err != nil { … }
//	route, err := routes.Get("/config/routes/web")
//
// Begin with [New], [Cache.Ready] and [Cache.Get]. A [Cache] is behind the ensemble: by a moment while the client
// is Connected, by more while it is not, and then [Cache.Stale] reports that. Never decide from a cache who may
// write. Read from the ensemble what has to be exact, or do it under a lease.
//
// Stability: stable.
//
// # Order
//
// A znode is added after its parent and removed before it. The events of one znode come in the order
// of its changes. If changes follow one another quickly, an event leads from the state that the cache
// had to the latest one. The states in between are not seen. A znode that was deleted and created
// again is removed and added, even if that happened during an outage. Replaying the events gives
// the cache.
//
// # One instant
//
// A [Snapshot] never changes. If it is [Snapshot.Settled], it is the tree at one instant: of a
// transaction it has everything or nothing. Otherwise some of its znodes may be newer than others. A
// snapshot is settled by the reply to a read. So the snapshot after a deletion, which needs no
// read, is not settled until the next change is read or [Cache.Sync] returns.
//
// # Outages
//
// If the connection is lost, the cache keeps what it has and is stale. Once the client is Connected
// again, the cache reads all znodes again, because a server notifies of nothing that happened
// meanwhile. It then notifies of what differs, and is ready.
//
// # Permissions
//
// A znode that the client may not read is left out, with all below it, and so is one that the
// client can't take: one that is larger than [framework.WithMaxPacket] allows, or that is not
// compressed if the client is. That is logged once, and [Snapshot.Unread] has it. If it is the path
// itself, the cache keeps what it has and is stale: see [Cache.Ready] and [Cache.Snapshots].
//
// A change of an ACL alone notifies no client. So the cache tries to read what it may not read again
// every five seconds, and at each [Cache.Sync]; a directory whose listing was too large, once it has lost
// children. If a znode changes or is deleted while the client may
// not read it, servers since ZooKeeper 3.8.4 notify of nothing: the cache sees it when the znode changes
// again or the connection is lost.
//
// # What it costs
//
// The cache keeps one recursive watch at the server, and Close removes it. A fill costs a
// transaction that changes nothing, a read of each znode and a listing of each znode that has children.
// A change costs one read, a deletion nothing. Every change below the path is sent to every
// cache of the path, even if a filter or a depth leaves it out. So keep caches away from
// directories of locks, and from all else that is written often.
//
// # Values
//
// [Of] shows the data as values of a Go type, such as those of model.JSON.
//
// # Concurrency
//
// Everything may be called concurrently. A function of [Cache.OnEvent] is called on a goroutine of
// its own, and may call the cache and close it.
package cache
