package hold

import "github.com/docent-go/docent/internal/errtype"

// The sentinels of package lease, which documents them.
var (
	ErrReleased    = errtype.New("lease: released", "released")
	ErrNodeDeleted = errtype.New("its znode was deleted by another client", "node_deleted")
	ErrSuspended   = errtype.New("the connection was suspended", "suspended")
)
