package sim_test

import "net"

// A frames connection changes what is received, one frame at a time.
type frames struct {
	net.Conn
	change  func(frame []byte) []byte // returns what to read in the place of the frame
	in, out []byte                    // received, and to be read; used by Read alone
}

func (c *frames) Read(p []byte) (int, error) {
	chunk := make([]byte, 4<<10)
	for len(c.out) == 0 {
		n, err := c.Conn.Read(chunk)
		if err != nil {
			return 0, err
		}
		c.in = append(c.in, chunk[:n]...)
		c.take()
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

// take moves complete frames from in to out.
func (c *frames) take() {
	for len(c.in) >= frameAt {
		end := frameAt + int(big.Uint32(c.in))
		if len(c.in) < end {
			return
		}
		c.out = append(c.out, c.change(c.in[:end])...)
		c.in = c.in[end:]
	}
}
