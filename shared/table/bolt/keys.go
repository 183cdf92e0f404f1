package bolt

import (
	"bytes"
	"encoding/binary"

	"laneway/shared/table"
)

// Keys in the file.
//
// An item: two bytes with the length of pk, then pk and sk. Items of one partition are
// neighbours in the order of sk's bytes, which is the order that DynamoDB has.
//
// An index entry: two bytes with the length of the index pk, the index pk, the index
// sk escaped so that it ends where it ends and still sorts by its bytes, and the
// item's key.
//
// An expiry: eight bytes of the time, the table's name and a zero, the item's key.

func prefix(pk string) []byte {
	b := make([]byte, 0, 2+len(pk)+64)
	b = binary.BigEndian.AppendUint16(b, uint16(len(pk)))
	return append(b, pk...)
}

func itemKey(k table.Key) []byte { return append(prefix(k.PK), k.SK...) }

// splitItemKey gives "" for what itemKey cannot have made.
func splitItemKey(b []byte) (pk, sk string) {
	if len(b) < 2 {
		return "", ""
	}
	n := int(binary.BigEndian.Uint16(b))
	if len(b) < 2+n {
		return "", ""
	}
	return string(b[2 : 2+n]), string(b[2+n:])
}

// appendEscaped writes a zero byte as 00 FF. Followed by 00 00 it is a string that
// ends; without, it is a bound in front of all entries that are not less than s.
func appendEscaped(b []byte, s string) []byte {
	for i := range len(s) {
		b = append(b, s[i])
		if s[i] == 0 {
			b = append(b, 0xff)
		}
	}
	return b
}

func indexKey(ipk, isk string, k table.Key) []byte {
	b := appendEscaped(prefix(ipk), isk)
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(k.PK)))
	b = append(b, k.PK...)
	return append(b, k.SK...)
}

// splitIndexEntry takes what follows the index pk apart.
func splitIndexEntry(b []byte) (isk, pk, sk string, ok bool) {
	end := 0
	for {
		z := bytes.IndexByte(b[end:], 0)
		if z < 0 || end+z+1 >= len(b) {
			return "", "", "", false
		}
		if end += z; b[end+1] == 0 {
			break
		}
		end += 2
	}
	isk = string(bytes.ReplaceAll(b[:end], []byte{0, 0xff}, []byte{0}))
	pk, sk = splitItemKey(b[end+2:])
	return isk, pk, sk, pk != ""
}

// expiryKey keeps times before 1970 in front of all others.
func expiryKey(at int64, k table.Key) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(max(at, 0)))
	b = append(append(b, k.Table...), 0)
	return append(b, itemKey(k)...)
}

func splitExpiryKey(b []byte) (at int64, k table.Key, ok bool) {
	if len(b) < 8 {
		return 0, k, false
	}
	at = int64(binary.BigEndian.Uint64(b))
	name, key, ok := bytes.Cut(b[8:], []byte{0})
	k.Table = string(name)
	k.PK, k.SK = splitItemKey(key)
	return at, k, ok && k.PK != "" && k.SK != ""
}

// after is the first key behind all that begin with p; nil: there is none.
func after(p []byte) []byte {
	q := bytes.Clone(p)
	for i := len(q) - 1; i >= 0; i-- {
		if q[i]++; q[i] != 0 {
			return q[:i+1]
		}
	}
	return nil
}
