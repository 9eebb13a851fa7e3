package tap

import "encoding/binary"

// AppendString returns b with s behind it, as the protocol has strings.
func AppendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// Strings returns the strings of a body that is a list whose entries have
// perEntry strings each, one after another. ok is false for any other body.
func Strings(body []byte, perEntry int) (all []string, ok bool) {
	if len(body) < lengthSize {
		return nil, false
	}
	entries, rest := int(int32At(body, 0)), body[lengthSize:]
	if entries > len(rest)/(lengthSize*perEntry) { // each string has a length
		return nil, false
	}
	for range max(entries, 0) * perEntry { // -1 is the list that is null
		s, after, found := readString(rest)
		if !found {
			return nil, false
		}
		all, rest = append(all, string(s)), after
	}
	return all, len(rest) == 0
}

// CutString cuts the string at the start of a body from what follows it. ok is false
// if there is none.
func CutString(body []byte) (s, rest []byte, ok bool) { return readString(body) }
