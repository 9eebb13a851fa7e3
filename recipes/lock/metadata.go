package lock

import (
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// nodeData returns the data for the znode of c's attempt. by is the telemetry of the call.
func (cfg *config) nodeData(client *framework.Client, c caller, by *telemetry.Acquire) []byte {
	return cfg.attemptData(client, c, "", by)
}

// attemptData is nodeData with the id of the attempt.
func (cfg *config) attemptData(
	client *framework.Client, c caller, attempt string, by *telemetry.Acquire,
) []byte {
	switch {
	case cfg.noMetadata && cfg.data != nil:
		return cfg.data
	case cfg.noMetadata:
		return contender.LocalAddress()
	}
	if cfg.noTraceparent {
		by = nil
	}
	m := contender.Metadata(c.owner.String(), c.party(client), cfg.data, by)
	m.Attempt, m.Handoff = attempt, cfg.handoff
	return m.Encode()
}
