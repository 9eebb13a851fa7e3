package zkserver

// A code is an error number of the protocol; 0 is success.
type code int32

const (
	codeOK                      code = 0
	codeRuntimeInconsistency    code = -2
	codeMarshallingError        code = -5
	codeUnimplemented           code = -6
	codeBadArguments            code = -8
	codeNoNode                  code = -101
	codeNoAuth                  code = -102
	codeBadVersion              code = -103
	codeNoChildrenForEphemerals code = -108
	codeNodeExists              code = -110
	codeNotEmpty                code = -111
	codeSessionExpired          code = -112
	codeInvalidACL              code = -114
	codeAuthFailed              code = -115
	codeSessionMoved            code = -118
	codeNotReadOnly             code = -119
	codeNoWatcher               code = -121
)
