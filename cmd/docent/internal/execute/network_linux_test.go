package execute_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// faultsVariable sets the number of faults of TestNetworkFaults, which then uses a real ensemble.
const faultsVariable = "DOCENT_EXEC_FAULTS"

// Two execs contend. The holder's network is cut until the other one holds the lock, or the leader of
// the ensemble is frozen or isolated. No command runs together with another one.
func TestNetworkFaults(t *testing.T) {
	t.Parallel()
	faults := countOf(t, faultsVariable, 0)
	var ensemble *zktest.Ensemble
	var upstreams [2]string
	if faults > 0 {
		ensemble = zktest.RunEnsemble(t, 3)
		upstreams = [2]string{ensemble.Servers[0].Addr(), ensemble.Servers[1].Addr()}
	} else {
		_, addr := serve(t)
		upstreams = [2]string{addr, addr}
	}
	var proxies [2]*zkproxy.Proxy
	var addrs [2]string
	for i, upstream := range upstreams {
		proxies[i] = zkproxy.Run(t, upstream)
		addrs[i] = proxies[i].Addr()
	}
	o := contend(t, fmt.Sprintf("/exec-faults-%d", os.Getpid()), addrs, func() setting { return setting{shape: shapes()[1], depth: 1} })
	for n := range max(1, faults) {
		contender, holder := o.holder(t, nil)
		how := []string{"silence", "cut", "freeze", "isolate"}[n%4]
		<-time.After(time.Duration(rand.IntN(300)) * time.Millisecond)
		t.Logf("%v: %s", time.Now(), how)
		switch how {
		case "silence":
			proxies[contender].Blackhole(zkproxy.ToServer)
			proxies[contender].Blackhole(zkproxy.ToClient)
			o.holder(t, holder)
			proxies[contender].Heal()
		case "cut":
			proxies[contender].Refuse()
			proxies[contender].Cut()
			o.holder(t, holder)
			proxies[contender].Heal()
		default:
			disturbLeader(t, ensemble, how)
		}
	}
	o.end(t, 1+(faults+1)/2)
}

// disturbLeader freezes or isolates the leader for longer than a session lasts.
func disturbLeader(t *testing.T, ensemble *zktest.Ensemble, how string) {
	t.Helper()
	leader := must.Get(ensemble.Leader(t.Context()))(t)
	if how == "freeze" {
		must.OK(t, leader.Freeze())
	} else {
		must.OK(t, ensemble.Isolate(leader))
	}
	<-time.After(6 * time.Second)
	must.OK(t, ensemble.Repair(t.Context()))
}
