// Package node keeps a znode: it creates the znode again if the session that the znode belonged to has
// ended, or if another client deleted it. Services register themselves with it. It does what Curator's
// PersistentNode and PersistentTtlNode do, in their layouts.
//
// Begin with [New] and [Node.Await]. By default the znode is ephemeral. If the session ends, the [Node] creates
// the znode in the client's next session at once. If the znode of the former session still exists by then, the
// Node replaces it in one transaction. [Sequential], [Persistent] and [WithTTL] keep znodes of other kinds.
//
// A Node never deletes, changes or adopts a znode of another client's session. While such a znode is at
// the path, [Node.Await] and [Node.Set] return [ErrTaken], and the Node waits until the znode is
// deleted. If another client writes to the Node's own znode, the Node leaves the data alone, and reports
// the change to the functions of [Node.OnChange].
//
// ZooKeeper deletes by path. If another client deletes the Node's znode, and creates another within the
// round trip of the Node's own deletion, the Node deletes that one.
//
// Everything here may be used concurrently. A Node has one goroutine, which makes all its requests.
// Errors are [ErrTaken], [framework.ErrClosed] once the Node or its client is closed, and those of the
// client's operations.
//
// Stability: stable.
package node
