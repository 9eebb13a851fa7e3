package tap

import "github.com/docent-go/docent/internal/proto"

// parseCreated parses the body of a create2 reply: the znode's path and Stat.
func parseCreated(body []byte) (path string, st proto.Stat, ok bool) {
	d := proto.NewDecoder(body)
	path, st = d.Path(), d.Stat()
	if d.Err() != nil {
		return "", proto.Stat{}, false
	}
	return path, st, true
}
