//go:build !linux

package zktest

import "fmt"

// Namespaces returns [ErrNoNamespaces]: only Linux has them.
func Namespaces() error { return fmt.Errorf("%w: they need Linux", ErrNoNamespaces) }

func newNamespaces(int) (network, error) { return nil, Namespaces() }
