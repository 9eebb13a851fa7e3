// Package chaos has no code but its tests.
package chaos
