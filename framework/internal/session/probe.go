package session

import (
	"github.com/docent-go/docent/internal/proto"
)

// probe sends a request on a connection that has not served yet. After a refusal, it finds out
// whether the server refuses further requests. If a server requires an identity that the client
// does not have, it says so at the first request and closes the connection.
func (s *Session) probe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent.probe {
		return
	}
	s.sent.probe = s.spawn(func() { // ends with the reply or the connection
		answer, err := s.tap.Ask(proto.OpExists, append(proto.AppendString(nil, "/"), 0), probeLimit)
		s.mu.Lock()
		s.sent.probe, s.heard = false, err == nil && answer.Code != proto.CodeAuthRequired
		s.mu.Unlock()
		if err == nil { // else the end of the connection wakes the loop
			s.Wake()
		}
	})
}

// probeLimit is more than the length of the Stat in the reply to a probe.
const probeLimit = 1 << 10

// accepted reports whether the server has answered a probe.
func (s *Session) accepted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}
