package framework_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/zkserver"
)

// Every call works on a server that lacks an operation, or says that the server does not support it. The
// server replies so, or closes the connection.
func TestMissingOperations(t *testing.T) {
	sets := map[string][]int32{"Keeper": zkserver.KeeperLacks()}
	for name, op := range map[string]proto.Opcode{
		"create2": proto.OpCreate2, "container": proto.OpCreateContainer, "TTL": proto.OpCreateTTL, "addWatch": proto.OpAddWatch,
		"removeWatches": proto.OpRemoveWatches, "getEphemerals": proto.OpGetEphemerals, "whoAmI": proto.OpWhoAmI,
		"checkWatches": proto.OpCheckWatches, "setWatches": proto.OpSetWatches, "setWatches2": proto.OpSetWatches2,
	} {
		sets[name] = []int32{int32(op)}
	}
	for name, lacks := range sets {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, silent %v", name, silent), func(t *testing.T) {
				opts := []zkserver.Option{zkserver.WithoutOpcodes(lacks...)}
				if silent {
					opts = append(opts, zkserver.WithoutReplyToUnknown())
				}
				virtually(t, func(t *testing.T, srv *zkserver.Server) { callAll(t, srv, lacks) }, opts...)
			})
		}
	}
}

// callAll makes calls of every kind, twice: the client knows the server by the second time.
func callAll(t *testing.T, srv *zkserver.Server, lacks []int32) {
	core, logs := observer.New(zap.WarnLevel)
	c := virtual(t, srv, framework.WithLogger(zap.New(core)))
	lacking := func(op proto.Opcode) bool { return slices.Contains(lacks, int32(op)) }
	may := func(what string, err error, op proto.Opcode) {
		t.Helper()
		if lacking(op) != errors.Is(err, framework.ErrUnsupported) || err != nil && !lacking(op) {
			t.Errorf("%s: %v, want ErrUnsupported: %v", what, err, lacking(op))
		}
	}
	for round := range 2 {
		root := fmt.Sprintf("/r%d", round)
		var stat framework.Stat
		must.Get(c.Create(t.Context(), root+"/a/b/c", []byte("data"), framework.WithParents(), framework.StatTo(&stat)))(t)
		if _, read, err := c.Get(t.Context(), root+"/a/b/c"); err != nil || read != stat {
			t.Errorf("read %+v, %v; Create stored %+v", read, err, stat)
		}
		path := must.Get(c.Create(t.Context(), root+"/queue/n-", nil, framework.WithParents(), framework.Protected(), framework.Ephemeral(), framework.Sequential()))(t)
		must.Get(c.Create(t.Context(), root+"/container", nil, framework.Container()))(t)
		st, ok, err := c.Exists(t.Context(), path)
		if err != nil || !ok || st.EphemeralOwner != c.Session().ID {
			t.Errorf("%s: %+v, %v, %v; want an ephemeral znode of the session", path, st, ok, err)
		}
		if names := children(t, c, root+"/queue"); len(names) != 1 {
			t.Errorf("%q in the queue, want one znode", names)
		}
		_, err = c.Create(t.Context(), root+"/ttl", nil, framework.TTL(time.Hour))
		may("TTL", err, proto.OpCreateTTL)
		_, err = c.WhoAmI(t.Context())
		may("WhoAmI", err, proto.OpWhoAmI)
		_, err = c.Ephemerals(t.Context(), root)
		may("Ephemerals", err, proto.OpGetEphemerals)
		watch, err := c.WatchTree(t.Context(), root)
		may("WatchTree", err, proto.OpAddWatch)
		if err == nil {
			watch.Close()
		}
		one := must.Get(c.Watch(t.Context(), path, framework.WatchData))(t)
		must.OK(t, c.Delete(t.Context(), path))
		await(t, one.Fired(), "the event")
		<-time.After(time.Minute) // watches are removed in the background
		must.OK(t, c.AwaitConnected(t.Context()))
	}
	if want := len(logs.FilterMessage("the server does not know an operation").All()); want == 0 && (lacking(proto.OpCreate2) || lacking(proto.OpAddWatch)) {
		t.Error("no line says what is missing")
	}
	said := map[int64]bool{}
	for _, line := range logs.FilterMessage("the server does not know an operation").All() {
		op := line.ContextMap()["zookeeper.opcode"].(int32)
		if said[int64(op)] {
			t.Errorf("operation %d: more than one line", op)
		}
		said[int64(op)] = true
	}
}
