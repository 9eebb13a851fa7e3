package wire

import "github.com/docent-go/docent/internal/proto"

// Contacts returns how many contacts the lease clock keeps.
func Contacts(w *Wire) int { return len(w.clock.contacts) }

// Growth is the most that a connection allocates for a frame beyond what has arrived.
const Growth = growth

func (w *Wire) Expected(op proto.Opcode) int { return w.sizes.of(op).expected() }
