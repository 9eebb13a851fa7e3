package tap

import "github.com/docent-go/docent/internal/proto"

// A Read is a kind of read that can leave a watch.
type Read proto.Opcode

// The reads that can leave a watch.
const (
	ReadExists   Read = Read(proto.OpExists)
	ReadData     Read = Read(proto.OpGetData)
	ReadChildren Read = Read(proto.OpGetChildren2)
)

// Arm makes every read of that kind and path leave a watch, until the returned function is called.
// The server keeps one watch for all of them.
func (t *Tap) Arm(kind Read, path string) (disarm func()) {
	key := watchKey{proto.Opcode(kind), path}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arming[key]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.arming[key]--; t.arming[key] == 0 {
			delete(t.arming, key)
		}
	}
}

// completeReadLocked sets a read's watch flag if the path is armed.
func (t *Tap) completeReadLocked(p []byte, opcode proto.Opcode) []byte {
	if len(t.arming) == 0 {
		return p
	}
	path, rest, ok := readString(p[proto.LengthSize+proto.RequestHeadSize:])
	if !ok || len(rest) != 1 || t.hasTreeLocked(path) || t.arming[watchKey{opcode, string(path)}] == 0 {
		return p
	}
	p = append([]byte(nil), p...)
	p[len(p)-1] = 1
	return p
}
