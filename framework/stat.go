package framework

import (
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// A Stat is a znode's metadata.
type Stat struct {
	Czxid          int64     // the transaction that created the znode; ever greater
	Mzxid          int64     // the transaction that last changed its data
	Pzxid          int64     // the transaction that last added or removed a child
	Ctime          time.Time // creation, by the server's clock
	Mtime          time.Time // last change of the data, by the server's clock
	Version        int32     // number of changes of the data
	Cversion       int32     // number of changes of the children
	Aversion       int32     // number of changes of the ACL
	EphemeralOwner int64     // the session that an ephemeral znode belongs to, else 0
	DataLength     int32     // in bytes
	NumChildren    int32
}

// statOf returns the Stat, which is zero if st is.
func statOf(st proto.Stat) Stat {
	if st == (proto.Stat{}) {
		return Stat{}
	}
	return Stat{
		Czxid: st.Czxid, Mzxid: st.Mzxid, Pzxid: st.Pzxid,
		Ctime: time.UnixMilli(st.Ctime), Mtime: time.UnixMilli(st.Mtime),
		Version: st.Version, Cversion: st.Cversion, Aversion: st.Aversion,
		EphemeralOwner: st.EphemeralOwner, DataLength: st.DataLength, NumChildren: st.NumChildren,
	}
}
