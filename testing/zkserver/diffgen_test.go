package zkserver_test

import (
	"fmt"
	"math/rand/v2"
)

// A request is a generated request. Its fields may depend on the server that it is
// sent to, as zxids do.
type request struct {
	op     int32
	flush  bool // asked only for what comes before the answer
	fields func(s *side) []any
}

// A generator makes random requests below a root that it changes now and then, so that no access
// list locks all clients out for long.
type generator struct {
	rng     *rand.Rand
	root    string
	lasting bool // no containers and TTL nodes, which the server removes
}

func (g *generator) pick(list ...string) string { return list[g.rng.IntN(len(list))] }

func (g *generator) chance(percent int) bool { return g.rng.IntN(100) < percent }

// path returns a path of up to three names, and rarely one that is odd.
func (g *generator) path() string {
	if g.chance(2) {
		return g.pick("/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota", "/nowhere/a",
			g.root+"/", g.root+"//a", g.root+"/./a", g.root+"/a/..", g.root+"/\u0001", g.root+"/é")
	}
	path := g.root
	for range g.rng.IntN(4) {
		path += "/" + g.pick("a", "b", "c")
	}
	return path
}

// newPath returns a path to write to. Those that are odd here make the real server
// fail in its own way when they are watched.
func (g *generator) newPath() string {
	if g.chance(2) {
		return g.pick("", "nopath", g.root+"/\U0001F600", g.root+"/\u001f", g.root+"/\u007f", g.root+"/\u0085",
			g.root+"/\ud7ff", g.root+"/\uf8ff", g.root+"/\uf900", g.root+"/\uffff", g.root+"/\uffef", g.root+"/a\xff")
	}
	return g.path()
}

func (g *generator) data() []byte {
	if g.chance(5) {
		return nil
	}
	return make([]byte, g.rng.IntN(20))
}

func (g *generator) version() int32 {
	if g.chance(60) {
		return -1
	}
	return int32(g.rng.IntN(4))
}

func (g *generator) acl() []entry {
	if g.chance(85) {
		return open()
	}
	perms := int32(g.rng.IntN(32))
	odd := [][]entry{
		nil,
		{{perms, "world", "anyone"}},
		{{perms, "world", "someone"}},
		{{31, "auth", ""}},
		{{perms, "auth", "ignored"}, {1, "world", "anyone"}},
		{{31, "digest", "u1:" + digests["u1:p1"]}, {perms, "world", "anyone"}},
		{{31, "digest", "u2:" + digests["u2:p2"]}},
		{{31, "digest", "nocolon"}},
		{{31, "digest", "a:b:c"}},
		{{31, "digest", "a:"}},
		{{31, "digest", ":b"}},
		{{31, "digest", "a:b:"}},
		{{31, "ip", "127.0.0.1"}},
		{{perms, "ip", "127.0.0.0/8"}, {1, "world", "anyone"}},
		{{31, "ip", "10.0.0.0/8"}},
		{{31, "ip", "127.0.0.1/33"}},
		{{31, "ip", "127.0.0"}},
		{{31, "nosuch", "x"}},
		{{31, "world", "anyone"}, {31, "world", "anyone"}, {perms, "world", "anyone"}},
	}
	return odd[g.rng.IntN(len(odd))]
}

// digests are the identities of the secrets that clients authenticate with.
var digests = map[string]string{
	"u1:p1": "fpT/y03U+EjItKZOSLGvjnJlyng=",
	"u2:p2": "o9NxcCGDPOlcV7JVhmKHOf5ctVE=",
}

// create returns a random create of any kind.
func (g *generator) create() (op int32, fields []any) {
	path, data, acl := g.newPath(), g.data(), g.acl()
	if g.chance(20) {
		path += g.pick("-", "/", "/s-")
	}
	if g.lasting {
		return []int32{create, create2}[g.rng.IntN(2)], []any{path, data, acl, g.rng.IntN(4)}
	}
	op = []int32{create, create, create2, createContainer, createTTL}[g.rng.IntN(5)]
	switch op {
	case createContainer:
		return op, []any{path, data, acl, 4}
	case createTTL:
		ttl := int64(1) << 39
		if g.chance(15) {
			ttl = []int64{0, -1, -5, 1<<40 - 1, 1 << 40}[g.rng.IntN(5)]
		}
		return op, []any{path, data, acl, 5 + g.rng.IntN(2), ttl}
	}
	flags := g.rng.IntN(4)
	if g.chance(5) {
		flags = []int{4, 5, 6, 7, -1}[g.rng.IntN(5)]
	}
	return op, []any{path, data, acl, flags}
}

// mutation returns a random operation that a multi may hold.
func (g *generator) mutation() (op int32, fields []any) {
	switch n := g.rng.IntN(100); {
	case n < 50:
		return g.create()
	case n < 75:
		return del, []any{g.newPath(), g.version()}
	case n < 92:
		return setData, []any{g.newPath(), g.data(), g.version()}
	}
	return check, []any{g.newPath(), g.version()}
}

// subs returns the operations of a multi. A TTL flag in a create without a time to live
// is an internal error of the real server's, and left out.
func (g *generator) subs() []sub {
	list := make([]sub, 0, 5)
	for range g.rng.IntN(5) {
		op, fields := g.mutation()
		if op == create || op == create2 {
			if flags := fields[3].(int); flags == 5 || flags == 6 {
				continue
			}
		}
		list = append(list, sub{op, body(fields...)})
	}
	return list
}

// plain turns fixed fields into a request.
func plain(op int32, fields ...any) request {
	return request{op: op, fields: func(*side) []any { return fields }}
}

// next returns a random request.
func (g *generator) next() request {
	switch n := g.rng.IntN(100); {
	case n < 34:
		op, fields := g.mutation()
		if op == check {
			op, fields = exists, []any{g.path(), false} // a bare check stops the real server
		}
		return plain(op, fields...)
	case n < 48:
		return plain(multi, g.subs())
	case n < 58:
		return plain(exists, g.path(), g.chance(50))
	case n < 68:
		return plain(getData, g.path(), g.chance(50))
	case n < 80:
		return plain(int32(g.pick("\x08", "\x0c")[0]), g.path(), g.chance(50))
	case n < 83:
		return plain(getACL, g.path())
	case n < 87:
		return plain(setACL, g.path(), g.acl(), g.version())
	}
	return g.rare()
}

func (g *generator) rare() request {
	switch g.rng.IntN(12) {
	case 0:
		return plain(ping)
	case 1, 2:
		return plain(syncOp, g.path())
	case 3:
		return plain(auth, 0, "digest", []byte(g.pick("u1:p1", "u2:p2")))
	case 4:
		return plain(checkWatches, g.path(), 1+g.rng.IntN(5))
	case 5:
		return plain(removeWatches, g.path(), 1+g.rng.IntN(5))
	case 6:
		return plain(getEphemerals, g.pick(g.root, "", "/"))
	case 7:
		return plain(countChildren, g.path())
	case 8:
		return plain(multiRead, []sub{
			{getData, body(g.path(), false)}, {getChildren, body(g.path(), false)}, {getData, body(g.path(), false)},
		})
	case 9:
		return plain(addWatch, g.path(), g.rng.IntN(2))
	}
	return g.resume()
}

// resume asks for watches as after a reconnection, with a zxid of the past.
func (g *generator) resume() request {
	back := g.rng.IntN(60)
	paths := [5][]string{}
	for i := range paths {
		for range g.rng.IntN(3) {
			paths[i] = append(paths[i], g.path())
		}
	}
	op := int32(setWatches)
	if g.chance(30) {
		op = setWatches2
	}
	return request{op: op, fields: func(s *side) []any {
		seen := int64(0)
		if i := len(s.zxids) - 1 - back; i >= 0 {
			seen = s.zxids[i]
		}
		fields := []any{seen, paths[0], paths[1], paths[2]}
		if op == setWatches2 {
			fields = append(fields, paths[3], paths[4])
		}
		return fields
	}}
}

func (g *generator) newRoot(seed uint64, n int) request {
	g.root = fmt.Sprintf("/diff-%x-%d", seed, n)
	return plain(create, g.root, []byte("root"), open(), 0)
}
