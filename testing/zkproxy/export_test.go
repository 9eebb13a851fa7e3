package zkproxy

// The decoders, for the fuzzer.
var (
	DecodeConnect = decodeConnect
	DecodeAnswer  = decodeAnswer
	DecodeRequest = decodeRequest
	DecodeReply   = decodeReply
)

// Garbage is what answers a handshake when a fault rule wants it.
const Garbage = garbage

// Chunk is how much of a frame is read at once.
const Chunk = pieceSize
