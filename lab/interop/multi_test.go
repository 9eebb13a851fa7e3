package interop_test

import "testing"

// Multi locks and mutexes of both libraries, over the same three paths.
func TestCuratorMulti(t *testing.T) {
	t.Parallel()
	sub(t, "Exclusion", func(t *testing.T, path string) {
		a, b, c := path+"/a", path+"/b", path+"/c"
		ab, bc := a+","+b, b+","+c
		// All of them want b, so one at a time is in, and b's fences show their order. They also
		// contend for a and c.
		ours := []*native{multis.native(t, ab), multis.native(t, bc), mutexes.native(t, b)}
		theirs := []*foreigner{multis.foreigner(t, curator, ab), multis.foreigner(t, curator, bc), mutexes.foreigner(t, curator, b)}
		var contenders []contender
		for i := range ours {
			ours[i].fences, theirs[i].fences = b, b
			contenders = append(contenders, ours[i], theirs[i])
		}
		contend(t, path, 25, contenders...)
	})
	sub(t, "Refusal", func(t *testing.T, path string) {
		a, b := path+"/a", path+"/b"
		both := a + "," + b
		refusal(t, path, multis.native(t, both), multis.foreigner(t, curator, both))
		refusal(t, path, multis.foreigner(t, curator, both), multis.native(t, both))
		for _, member := range []string{a, b} {
			refusal(t, path, multis.native(t, both), mutexes.foreigner(t, curator, member))
			refusal(t, path, mutexes.foreigner(t, curator, member), multis.native(t, both))
			refusal(t, path, mutexes.native(t, member), multis.foreigner(t, curator, both))
			refusal(t, path, multis.foreigner(t, curator, both), mutexes.native(t, member))
		}
	})
	sub(t, "Order at one member", func(t *testing.T, path string) {
		a, b := path+"/a", path+"/b"
		inOrder(t, path, multis.native(t, a+","+b), mutexes.foreigner(t, curator, a),
			multis.native(t, a+","+b), multis.foreigner(t, curator, a+","+b), mutexes.native(t, a))
	})
}
