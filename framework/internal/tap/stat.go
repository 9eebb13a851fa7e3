package tap

// A Stat is a znode's metadata as the protocol carries it.
type Stat struct {
	Czxid, Mzxid                int64
	Ctime, Mtime                int64 // milliseconds since 1970, by the server's clock
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// parseCreated reads the body of a create2 reply: the znode's path and Stat.
func parseCreated(body []byte) (path string, st Stat, ok bool) {
	p, rest, ok := readString(body)
	if !ok || len(rest) < statSize {
		return "", Stat{}, false
	}
	return string(p), Stat{
		Czxid:          int64At(rest, 0),
		Mzxid:          int64At(rest, 8),
		Ctime:          int64At(rest, 16),
		Mtime:          int64At(rest, 24),
		Version:        int32At(rest, 32),
		Cversion:       int32At(rest, 36),
		Aversion:       int32At(rest, 40),
		EphemeralOwner: int64At(rest, 44),
		DataLength:     int32At(rest, 52),
		NumChildren:    int32At(rest, 56),
		Pzxid:          int64At(rest, 60),
	}, true
}
