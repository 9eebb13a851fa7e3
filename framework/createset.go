package framework

import "errors"

// A createSet is a set of options of a create.
type createSet uint

const (
	withEphemeral createSet = 1 << iota
	withSequential
	withContainer
	withTTL
	withProtected
	withData // see [KnownByData]
	withEpoch
	withList
	withWatch
	withDeletion
	withParents
	withACL
	withIdempotent
)

// has reports whether one of the options is given.
func (cfg *createConfig) has(options createSet) bool { return cfg.given&options != 0 }

// combined returns all faults in the combination of the options.
func (cfg *createConfig) combined() error {
	var faults []error
	for _, rule := range [...]struct {
		of, needs, excludes createSet
		fault               string
	}{
		{
			of: withContainer, excludes: withEphemeral | withSequential | withTTL,
			fault: "option Container: cannot be combined with Ephemeral, Sequential or TTL",
		},
		{of: withTTL, excludes: withEphemeral, fault: "option TTL: cannot be combined with Ephemeral"},
		{of: withProtected, needs: withEphemeral, fault: "option Protected: must be combined with Ephemeral"},
		{
			of: withData, needs: withEphemeral, excludes: withSequential | withProtected | withIdempotent,
			fault: "option KnownByData: must be combined with Ephemeral, " +
				"and with none of Sequential, Protected and Idempotent",
		},
		{
			of: withEpoch, needs: withData, excludes: withList | withWatch,
			fault: "option WithEpoch: must be combined with KnownByData, and not with ListTo or WatchTo",
		},
		{
			of: withIdempotent, excludes: withSequential | withProtected,
			fault: "option Idempotent: cannot be combined with Sequential or Protected",
		},
	} {
		if cfg.has(rule.of) && (cfg.given&rule.needs != rule.needs || cfg.has(rule.excludes)) {
			faults = append(faults, errors.New(rule.fault))
		}
	}
	if cfg.has(withDeletion) && !cfg.has(withProtected|withData) {
		faults = append(faults, errors.New("option DeletionTo: must be combined with Protected or KnownByData"))
	}
	return errors.Join(faults...)
}
