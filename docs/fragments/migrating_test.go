package fragments_test

import (
	"errors"
	"testing"
	"time"

	report "github.com/docent-go/docent/examples/port-from-curator"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
)

func TestMigratingFromCuratorPage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		port := must.Get(report.NewJob(s.client))(t)
		var j job
		want := func(what string, wantDone bool, wantErr error) {
			t.Helper()
			if done, err := port.Run(t.Context(), j.work); done != wantDone || !errors.Is(err, wantErr) {
				t.Errorf("%s: %v, %v, want %v, %v", what, done, err, wantDone, wantErr)
			}
		}
		want("a free lock", true, nil)
		s.hold(t, "/locks/report")
		want("a lock that another host holds", false, nil)
		s.server.Freeze()
		<-time.After(time.Minute) // the client gives the connection up
		want("a frozen server", false, framework.ErrNotConnected)
		s.server.Thaw()
		j.want(t, 1)
	})
}
