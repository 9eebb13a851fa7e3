// Package lease has what recipes share whose grants can be lost: the lease, the errors and the
// policy of a loss, and the metadata of contenders. Package lock has the same names.
package lease
