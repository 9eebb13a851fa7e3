package locktel

// NodeScopeName is the instrumentation scope of the metrics of kept znodes.
const NodeScopeName = "github.com/docent-go/docent/recipes/node"

// AttrNodeName is the name that a kept znode was given; it is left out if there is none.
const AttrNodeName = "zookeeper.node.name"

// Names of the metrics of kept znodes.
const (
	// MetricNodeStanding tells how many kept znodes exist, as far as is known.
	MetricNodeStanding = "zookeeper.node.standing"
	// MetricNodeCreations counts how often kept znodes were created.
	MetricNodeCreations = "zookeeper.node.creations"
)
