// Package lease has what recipes share that can be lost: the errors and the policy of a
// loss, and what contenders tell about themselves. Package lock has the same names.
package lease
