package proto

// A Code is what a reply says of its request: CodeOK, or an error.
type Code int32

// The codes (org.apache.zookeeper.KeeperException.Code).
const (
	CodeOK                      Code = 0
	CodeRuntimeInconsistency    Code = -2 // of an operation behind the failed one of a transaction
	CodeMarshallingError        Code = -5
	CodeUnimplemented           Code = -6
	CodeBadArguments            Code = -8
	CodeNoQuorum                Code = -13 // NewConfigNoQuorum
	CodeInProgress              Code = -14 // ReconfigInProgress
	CodeNoNode                  Code = -101
	CodeNoAuth                  Code = -102
	CodeBadVersion              Code = -103
	CodeNoChildrenForEphemerals Code = -108
	CodeNodeExists              Code = -110
	CodeNotEmpty                Code = -111
	CodeSessionExpired          Code = -112
	CodeInvalidACL              Code = -114
	CodeAuthFailed              Code = -115
	CodeSessionMoved            Code = -118
	CodeNotReadOnly             Code = -119
	CodeNoWatcher               Code = -121
	CodeReconfigDisabled        Code = -123
	CodeAuthRequired            Code = -124 // SessionClosedRequireSaslAuth
	CodeQuotaExceeded           Code = -125
	CodeThrottled               Code = -127
)
