package otelzk

import (
	"fmt"
)

// operationName returns ZooKeeper's name for an operation. A watch has no such name: in the
// protocol it is a flag of a read.
func operationName(op string) string {
	switch op {
	case "get", "config":
		return "getData"
	case "children":
		return "getChildren"
	case "set":
		return "setData"
	case "get ACL of":
		return "getACL"
	case "set ACL of":
		return "setACL"
	case "ephemerals":
		return "getEphemerals"
	case "txn", "create all":
		return "multi"
	}
	return op
}

// SessionKey returns a session's id as attributes show it.
func SessionKey(id int64) string { return fmt.Sprintf("%#x", id) }
