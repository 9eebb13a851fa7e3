package proto

// StatSize is the length of a Stat in bytes.
const StatSize = 68

// A Stat is a znode's metadata.
type Stat struct {
	Czxid, Mzxid                int64
	Ctime, Mtime                int64 // milliseconds since 1970, by the server's clock
	Version, Cversion, Aversion int32
	EphemeralOwner              int64
	DataLength, NumChildren     int32
	Pzxid                       int64
}

// A Node is the result of a read of a znode.
type Node struct {
	Exists   bool
	Stat     Stat // zero if the znode does not exist
	Data     []byte
	Children []string
}

// Stat takes a Stat.
func (d *Decoder) Stat() Stat {
	return Stat{
		Czxid:          d.Int64(),
		Mzxid:          d.Int64(),
		Ctime:          d.Int64(),
		Mtime:          d.Int64(),
		Version:        d.Int32(),
		Cversion:       d.Int32(),
		Aversion:       d.Int32(),
		EphemeralOwner: d.Int64(),
		DataLength:     d.Int32(),
		NumChildren:    d.Int32(),
		Pzxid:          d.Int64(),
	}
}

// Stat appends a Stat.
func (e *Encoder) Stat(s Stat) {
	e.Int64(s.Czxid)
	e.Int64(s.Mzxid)
	e.Int64(s.Ctime)
	e.Int64(s.Mtime)
	e.Int32(s.Version)
	e.Int32(s.Cversion)
	e.Int32(s.Aversion)
	e.Int64(s.EphemeralOwner)
	e.Int32(s.DataLength)
	e.Int32(s.NumChildren)
	e.Int64(s.Pzxid)
}
