package fault

import "strconv"

// An Action is the fault of a frame that a [Rule] names.
type Action int

const (
	// Pass lets the frame go: the rule only tells of it. It is the one action
	// that leaves the frame to later rules as well, and it hits when the frame
	// arrives.
	Pass Action = iota + 1

	// CutBefore cuts the connection instead of passing the frame on: a request
	// is not applied, an event is not delivered. It hits when the connection
	// has been cut. Earlier requests of the connection may have been applied
	// and their replies be lost with it.
	CutBefore

	// DropReply lets the server apply the request, and cuts the connection
	// instead of delivering the reply. It hits when the request has been applied
	// and the connection been cut. On a Connect, the session exists and the
	// client doesn't know its id.
	DropReply

	// HoldRequest withholds the request, and what the client sends after it, until
	// [Handle.Release]. It hits when everything before the request has been
	// passed on.
	HoldRequest

	// HoldReply lets the server apply the request and withholds the reply, and what
	// the server sends after it, until [Handle.Release]. Of an Event, it
	// withholds the event. It hits when the reply has been received and
	// everything before it been delivered. A client takes a connection on which
	// it receives nothing for two thirds of its session timeout for dead.
	HoldReply

	// DelayRequest is HoldRequest for the duration of the rule's Delay, counted from
	// the arrival of the request.
	DelayRequest

	// DelayReply is HoldReply for the duration of the rule's Delay, counted from the
	// arrival of the reply: delayed replies that arrive together leave together.
	DelayReply

	// DropEvent loses the event and keeps the connection, which ZooKeeper never does. ZooKeeper
	// does lose the event of a watch that was set again too late. For Event only.
	DropEvent

	// Garbage answers the handshake with what an HTTP server would say, and then
	// with nothing more; the connection stays open until the client closes it.
	// The handshake does not reach the server. It hits when the answer has been
	// sent. For Connect only.
	Garbage

	// HalfAnswer lets the server answer the handshake, delivers the first half of the
	// answer (its length among it), and withholds the rest until [Handle.Release].
	// It hits when the first half has been sent. For Connect only.
	HalfAnswer

	// OtherSession lets the server answer the handshake and delivers the answer with
	// another session id, that of [OtherID], in it. It hits when that has been
	// sent. Rules go on to know the session by its real id. For Connect only.
	OtherSession

	// Refuse has the server that the client is connected to answer the request by itself with the
	// rule's Code. The leader doesn't see the request, and no server carries it out. The reply has
	// the zxid that a real server gives with that code, and keeps its place among the replies. The
	// server then closes the connection if [Code.Closes]. Refuse hits when everything before the
	// reply has been delivered.
	Refuse
)

// OnReply reports whether the action's turn comes with the reply to the frame that
// was matched, rather than with that frame. Of an [Event] all actions are carried
// out on the event, which is its own reply.
func (a Action) OnReply() bool {
	switch a {
	case DropReply, HoldReply, DelayReply, HalfAnswer, OtherSession, Refuse:
		return true
	}
	return false
}

// String returns the name of the constant, such as "DropReply".
func (a Action) String() string {
	names := [...]string{
		Pass: "Pass", CutBefore: "CutBefore", DropReply: "DropReply", HoldRequest: "HoldRequest",
		HoldReply: "HoldReply", DelayRequest: "DelayRequest", DelayReply: "DelayReply", DropEvent: "DropEvent",
		Garbage: "Garbage", HalfAnswer: "HalfAnswer", OtherSession: "OtherSession",
		Refuse: "Refuse",
	}
	if !a.known() {
		return "Action(" + strconv.Itoa(int(a)) + ")"
	}
	return names[a]
}

func (a Action) known() bool { return a >= Pass && a <= Refuse }

func (a Action) delays() bool { return a == DelayRequest || a == DelayReply }

func (a Action) holds() bool { return a == HoldRequest || a == HoldReply || a == HalfAnswer }

// suits reports whether the action means something for frames of kind o.
func (a Action) suits(o Op) bool {
	switch a {
	case Garbage, HalfAnswer, OtherSession:
		return o == Connect
	case DropEvent:
		return o == Event
	case DropReply, HoldRequest, DelayRequest, Refuse:
		return o != Event
	}
	return true
}

// OtherID returns the session id that [OtherSession] puts in the place of the real one. No server gives it
// to another session: the beginning of the session differs by years.
func OtherID(session int64) int64 { return session ^ 1<<54 }
