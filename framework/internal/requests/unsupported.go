package requests

import (
	"fmt"

	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// Unsupported returns the error of a request that the server has replied to as one that it does not know.
// It wraps zkerr.ErrUnsupported, and says which servers know the operation.
func Unsupported(opcode proto.Opcode, server string) error {
	what := fmt.Sprintf("operation %d", opcode)
	switch opcode {
	case proto.OpCreate2:
		what = "create2, which ZooKeeper has since 3.5"
	case proto.OpCreateContainer:
		what = "containers, which ZooKeeper has since 3.5.1"
	case proto.OpCreateTTL: // the reply also of a server whose configuration does not allow it
		what = "a TTL, which ZooKeeper has since 3.5.3 with extendedTypesEnabled=true"
	case proto.OpReconfig: // the reply also of a standalone server
		what = "reconfig, which ensembles of ZooKeeper have since 3.5"
	case proto.OpRemoveWatches:
		what = "removeWatches, which ZooKeeper has since 3.5"
	case proto.OpAddWatch:
		what = "addWatch, which ZooKeeper has since 3.6"
	case proto.OpMultiRead:
		what = "multiRead, which ZooKeeper has since 3.6"
	case proto.OpGetEphemerals:
		what = "getEphemerals, which ZooKeeper has since 3.6"
	case proto.OpWhoAmI:
		what = "whoAmI, which ZooKeeper has since 3.7"
	}
	return fmt.Errorf("%w %s: %s", zkerr.ErrUnsupported, server, what)
}
