package framework_test

import (
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// A server reaps a container once its last child is gone, which DeleteTree sees to.
func TestDeleteTree_while_another_client_deletes(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, w *zkenv.Env) {
		tr, way, other, path := newTraces(), w.Route(t), w.Client(t), fresh(t)
		c := way.Client(t, framework.WithTracerProvider(tr.provider))
		mustCreate(t, other, path+"/leaf", "")
		last := way.Rules().Add(fault.Rule{Op: fault.Delete, Path: path, Action: fault.HoldRequest, Skip: 1})
		ctx := tr.caller(t)
		done := make(chan error, 1)
		go func() { done <- c.DeleteTree(ctx, path) }()
		await(t, last.Hit(), "the deletion of the emptied znode")
		_ = other.Delete(t.Context(), path) // or a real server has reaped it
		last.Release()
		if err := <-done; err != nil {
			t.Error(err)
		}
		wantSpans(t, tr.take(t, ctx, c), "delete (caller, unset) db.response.status_code=-111 zookeeper.node.path="+path+"\n"+
			"getChildren (caller, unset) zookeeper.node.path="+path+"\n"+
			"delete (caller, unset) zookeeper.node.path="+path+"/leaf\n"+
			"delete (caller, unset) db.response.status_code=-101 zookeeper.node.path="+path+"\n")
	})
}
