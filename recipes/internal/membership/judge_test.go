package membership //nolint:testpackage // it tests what is not exported

import (
	"testing"

	"github.com/docent-go/docent/framework"
)

// An ensemble that lost its latest transactions may still have the client's session, and so the Keeper's znode as it was
// earlier. It is the Keeper's, and Close deletes it.
func TestAnEarlierStateOfTheSessionsZnodeIsItsOwn(t *testing.T) {
	t.Parallel()
	k := &Keeper{session: 7, znode: framework.Stat{Czxid: 3, Mzxid: 5, Version: 1, EphemeralOwner: 7}}
	if got := k.judge(framework.Stat{Czxid: 3, Mzxid: 3, EphemeralOwner: 7}, true); got != ownZnode {
		t.Errorf("the znode is judged %d, want the Keeper's own", got)
	}
	k.opts.Lasting, k.znode.EphemeralOwner = true, 0
	if got := k.judge(framework.Stat{Czxid: 3, Mzxid: 3}, true); got != lastingZnode {
		t.Errorf("a znode of no session is judged %d, want one to be adopted", got)
	}
}
