//go:build !unix

package freeport

import "net"

func free(port int) bool {
	l, err := net.Listen("tcp4", addr(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
