package zkproxy

// The decoders, for the fuzzer.
var (
	DecodeConnect = decodeConnect
	DecodeAnswer  = decodeAnswer
	DecodeReply   = decodeReply
)

// Chunk is how much of a frame is read at once.
const Chunk = pieceSize
