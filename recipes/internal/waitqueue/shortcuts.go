package waitqueue

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
)

// shortcuts save an attempt requests and round trips. Each attempt has its own, and calls them at the steps
// of its way. [plain] are those that save nothing; the package's other shortcuts are left out of a build
// with the tag docent_plain, which then keeps every promise but the number of its requests.
type shortcuts interface {
	// creating is called before the node is created, and returns the options of that. answered is called
	// when the creation has been answered or has failed, and left when the attempt is granted or leaves.
	creating(opts []framework.CreateOption) []framework.CreateOption
	answered()
	left(granted bool)

	// list returns what a listing shows that contains the attempt's node, or that was sent after the
	// latest event and after the reply to the node's creation. listed reports whether that needs no request.
	list(ctx context.Context) (view, error)
	listed() bool

	// prepare is called with the position that the latest listing shows, and returns it with more to wait
	// for. after returns the position after an event, if that is known without a listing.
	prepare(pos position, nodes []queuenode.Node, own int) position
	after(w *waiter) (position, bool)
}
