package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/lab/bench/contender"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// The modes.
const (
	standalone = "standalone"
	ensemble   = "ensemble"
	embedded   = "embedded"
)

// A setting is what the contenders run on.
type setting struct {
	mode  string
	rtt   time.Duration // added
	fsync bool
}

func (s setting) String() string {
	text := s.mode + ", loopback"
	if s.rtt > 0 {
		text = fmt.Sprintf("%s, %v of round trip added", s.mode, s.rtt)
	}
	if s.fsync {
		text += ", fsync"
	}
	return text
}

// containerInterval is ZooKeeper's own: at zktest's, parents of locks would come and
// go while they are used.
const containerInterval = time.Minute

// A site is a setting that runs.
type site struct {
	setting setting
	version string
	// addrs are the servers, for the first session, the second one, and so on: an
	// ensemble's followers, so that writes take the longer way for all alike.
	addrs   []string
	servers []*zktest.Server // none in the embedded mode
	proxies []*zkproxy.Proxy // before addrs, where there is something to add or to count
	eye     *zk.Conn         // sees how far waiters have come, not by way of a proxy
	looks   int64            // requests by eye
	closers []func() error
}

func openSite(ctx context.Context, s setting) (_ *site, err error) {
	st := &site{setting: s}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.close())
		}
	}()
	if err := st.start(ctx); err != nil {
		return nil, err
	}
	direct := st.addrs[0]
	if s.rtt > 0 || s.mode == embedded {
		if err := st.interpose(); err != nil {
			return nil, err
		}
	}
	conn, err := contender.Dial(ctx, direct, sessionTimeout)
	if err != nil {
		return nil, err
	}
	st.eye = conn
	st.closers = append(st.closers, func() error { conn.Close(); return nil })
	return st, nil
}

// start starts the servers.
func (st *site) start(ctx context.Context) error {
	options := []zktest.Option{zktest.WithContainerInterval(containerInterval)}
	if st.setting.fsync {
		options = append(options, zktest.WithFsync())
	}
	switch st.setting.mode {
	case embedded:
		return st.embed()
	case standalone:
		server, err := zktest.Start(ctx, options...)
		if err != nil {
			return err
		}
		st.closers = append(st.closers, server.Close)
		st.servers = []*zktest.Server{server}
		st.addrs = []string{server.Addr()}
	default:
		e, err := zktest.StartEnsemble(ctx, 3, options...)
		if err != nil {
			return err
		}
		st.closers = append(st.closers, e.Close)
		st.servers = e.Servers
		followers, err := e.Followers(ctx)
		if err != nil {
			return err
		}
		for _, f := range followers {
			st.addrs = append(st.addrs, f.Addr())
		}
	}
	answer, err := st.servers[0].FourLetter(ctx, "srvr")
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(answer, "\n")
	version, _, _ := strings.Cut(strings.TrimPrefix(line, "Zookeeper version: "), "-")
	st.version = version
	return nil
}

func (st *site) embed() error {
	server, err := zkserver.Start(zkserver.WithReapInterval(containerInterval))
	if err != nil {
		return err
	}
	st.closers = append(st.closers, server.Close)
	addr, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	st.addrs, st.version = []string{addr}, "embedded"
	return nil
}

// interpose puts a proxy before each server.
func (st *site) interpose() error {
	for i, addr := range st.addrs {
		p, err := zkproxy.Start(addr)
		if err != nil {
			return err
		}
		st.closers = append(st.closers, p.Close)
		st.proxies = append(st.proxies, p)
		st.addrs[i] = p.Addr()
	}
	return nil
}

// requests returns how many packets the contenders have sent so far, as the servers
// have counted them.
func (st *site) requests(ctx context.Context) (int64, error) {
	total := -st.looks
	for _, s := range st.servers {
		n, err := s.Requests(ctx)
		if err != nil {
			return 0, err
		}
		total += n
	}
	if len(st.servers) == 0 {
		total = 0 // the eye is not seen by the proxies
		for _, p := range st.proxies {
			total += int64(len(p.Requests()))
		}
	}
	return total, nil
}

// delay sets whether the round trip is made longer: warming up does without.
func (st *site) delay(on bool) {
	for _, p := range st.proxies {
		p.ResetRequests()
		if on {
			p.SetLatency(st.setting.rtt)
		} else {
			p.SetLatency(0)
		}
	}
}

// roundTrip returns the median time of a small read, as contenders see it.
func (st *site) roundTrip(ctx context.Context) (time.Duration, error) {
	conn, err := contender.Dial(ctx, st.addrs[0], sessionTimeout)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var samples []float64
	for range 50 {
		begun := time.Now()
		if _, _, err := conn.Exists("/"); err != nil {
			return 0, err
		}
		samples = append(samples, float64(time.Since(begun)))
	}
	return time.Duration(quantile(samples, 0.5)), nil
}

// settle is how long a waiter's requests may take to come to rest.
func (st *site) settle() time.Duration { return 5*time.Millisecond + 4*st.setting.rtt }

func (st *site) close() error {
	var errs []error
	for _, closer := range slices.Backward(st.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}
