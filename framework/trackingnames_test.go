package framework_test

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestTracking_of_a_configuration_without_addresses follows one configuration after another.
func TestTracking_of_a_configuration_without_addresses(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		first, second := srv.Frontend(0).Addr(), srv.Frontend(1).Addr()
		c := connect(t, first, framework.WithDialer(srv.Dial))
		config := mustCreate(t, c, "/config", "")
		framework.Track(c, config)
		host, port := must.Get2(net.SplitHostPort(second))(t)
		for _, tc := range []struct{ configuration, want string }{
			{"server.1=127.0.0.1:1:2:participant\nversion=1", first},
			{"server.1=" + host + ":1:2:participant;0.0.0.0:" + port + "\nversion=2", second},
			{"server.1=127.0.0.1:1:2:participant\nversion=3", second},
		} {
			must.Get(c.Set(t.Context(), config, []byte(tc.configuration), framework.AnyVersion))(t)
			synctest.Wait()
			if got := c.Servers(); !slices.Equal(got, []string{tc.want}) {
				t.Errorf("servers %v after %q, want %s", got, tc.configuration, tc.want)
			}
		}
	}, zkserver.WithFrontends(2))
}

// TestAChrootSurvivesANewConfiguration follows a configuration, which never names a chroot.
func TestAChrootSurvivesANewConfiguration(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		first, second := srv.Frontend(0).Addr(), srv.Frontend(1).Addr()
		outside := connect(t, first, framework.WithDialer(srv.Dial))
		mustCreate(t, outside, "/app", "")
		c := connect(t, first+"/app", framework.WithDialer(srv.Dial))
		config := mustCreate(t, outside, "/config", "server.1="+second[:len(second)-len(":2181")]+":1:2;2181\nversion=1")
		framework.Track(c, config)
		synctest.Wait()
		if got := c.Servers(); !slices.Equal(got, []string{second}) {
			t.Fatalf("servers %v, want %s", got, second)
		}
		mustCreate(t, c, "/node", "")
		if _, ok, err := outside.Exists(t.Context(), "/app/node"); err != nil || !ok {
			t.Errorf("/app/node exists: %v, %v", ok, err)
		}
	}, zkserver.WithFrontends(2))
}
