package framework_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// GetEach has for each path what a Get of it has, in whatever order and by however many requests it reads them, of
// directories that were read before and of others: data, Stat, or error.
func TestGetEachIsAsManyGets(t *testing.T) {
	const clients, calls, most = 10, 10, 300
	for version, reply := range map[string]int{"3.6.0": 16 << 10, "3.9.6": 16 << 10, zkserver.DefaultVersion: 1 << 20} {
		runVirtually(t, version, func(t *testing.T, srv *zkserver.Server) {
			r := rand.New(rand.NewPCG(7, uint64(reply)))
			paths := append(drawZnodes(t, virtual(t, srv), r), "/", "/zookeeper")
			packet := framework.WithMaxPacket(1<<20, reply)
			one := virtual(t, srv, packet)
			for range clients {
				c := virtual(t, srv, packet)
				for range calls {
					some := make([]string, 1+r.IntN([]int{6, most}[r.IntN(2)]))
					for i := range some {
						some[i] = paths[r.IntN(len(paths))]
					}
					reads, errs := c.GetEach(t.Context(), some...)
					for i, path := range some {
						data, st, err := one.Get(t.Context(), path)
						if !errors.Is(errs[i], kindOf(err)) || !bytes.Equal(reads[i].Data, data) || (reads[i].Data == nil) != (data == nil) || reads[i].Stat != st {
							t.Errorf("%s: %d bytes, %v; want %d, %v", path, len(reads[i].Data), errs[i], len(data), err)
						}
					}
				}
			}
		}, zkserver.WithVersion(version))
	}
}

// kindOf returns what an error of a read says, without its size.
func kindOf(err error) error {
	for _, kind := range []error{framework.ErrNoNode, framework.ErrNoAuth, framework.ErrTooLarge} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}

// drawZnodes makes znodes in several directories, and returns their paths: some are absent, and some may not be read.
func drawZnodes(t *testing.T, c *framework.Client, r *rand.Rand) (paths []string) {
	t.Helper()
	const dirs, each = 12, 12
	must.OK(t, framework.CreateUnchecked(c, "/null"))
	paths = append(paths, "/null")
	for i := range dirs * each {
		path := fmt.Sprintf("/%d/%d", i%dirs, i)
		data := make([]byte, []int{0, 10, 1000, 15 << 10, 60 << 10}[r.IntN(5)])
		switch copy(data, path); r.IntN(8) {
		case 0: // absent
		case 1:
			mustCreate(t, c, path, string(data), unreadable)
		default:
			mustCreate(t, c, path, string(data))
		}
		paths = append(paths, path)
	}
	return paths
}
