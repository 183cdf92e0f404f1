package bolt

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"laneway/shared/table"
)

var everyKind = table.Attrs{
	"s": "text", "empty": "", "n": int64(-300), "yes": true, "no": false, "b": []byte{0, 255},
	"set": table.Set{"a", "b"}, "l": []string{"x", ""}, "m": table.Map{"k": "v", "m": table.Map{"n": int64(1)}}, "none": table.Map{},
}

// Files of earlier versions must stay readable: these bytes may never change.
func TestStoredFormIsStable(t *testing.T) {
	t.Parallel()
	const stored = "010a016262" + "0200ff" + "05656d707479" + "7300" + "016c6c" + "020178" + "00" + "016d6d" + "02016b730176016d6d01016e6902" +
		"016e69" + "d704" + "026e6f66" + "046e6f6e656d00" + "0173" + "730474657874" + "03736574" + "5302" + "01610162" + "03796573" + "74"
	if got := hex.EncodeToString(encode(everyKind)); got != stored {
		t.Errorf("got  %s\nwant %s", got, stored)
	}
	b, err := hex.DecodeString(stored)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(b)
	if d := cmp.Diff(everyKind, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestDamagedItemsAreRefused(t *testing.T) {
	t.Parallel()
	whole := encode(everyKind)
	for n := range whole {
		if _, err := decode(whole[:n]); !errors.Is(err, errCorrupt) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	for _, b := range [][]byte{append(bytes.Clone(whole), 0), {2, 0}, {1, 1, 1, 'a', 'z'}, {1, 255, 255, 255, 255, 15}, nil} {
		if _, err := decode(b); !errors.Is(err, errCorrupt) {
			t.Errorf("% x: %v", b, err)
		}
	}
}

// FuzzDecode: nothing that a damaged file holds makes it panic, and what can be read
// is written back so that it reads the same.
func FuzzDecode(f *testing.F) {
	f.Add(encode(everyKind))
	f.Add([]byte{1, 1, 1, 'm', 'm', 1, 1, 'm', 'm', 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decode(b)
		if err != nil {
			return
		}
		again, err := decode(encode(a))
		if d := cmp.Diff(a, again); d != "" || err != nil {
			t.Errorf("%v:\n%s", err, d)
		}
	})
}

// FuzzKeys: keys come apart as they were put together, and sort as DynamoDB sorts.
func FuzzKeys(f *testing.F) {
	f.Add("p", "s", "i", "x", int64(5))
	f.Add("p\x00", "\x00", "a\x00b", "a\x00", int64(1<<40))
	f.Fuzz(func(t *testing.T, pk, sk, isk, other string, at int64) {
		k := table.Key{Table: table.Runs, PK: pk, SK: sk}
		if table.ValidateKey(k) != nil || isk == "" || other == "" {
			return
		}
		if p, s := splitItemKey(itemKey(k)); p != pk || s != sk {
			t.Errorf("item key: %q %q", p, s)
		}
		entry := indexKey("A", isk, k)
		i, p, s, ok := splitIndexEntry(entry[len(prefix("A")):])
		if !ok || i != isk || p != pk || s != sk {
			t.Errorf("index entry: %q %q %q", i, p, s)
		}
		if bound := appendEscaped(prefix("A"), other); (isk < other) != (bytes.Compare(entry, bound) < 0) {
			t.Errorf("index key %q against the bound %q", isk, other)
		}
		if isk != other && (isk < other) != (bytes.Compare(entry, indexKey("A", other, k)) < 0) {
			t.Errorf("order of %q and %q", isk, other)
		}
		if at > 0 {
			if got, gk, ok := splitExpiryKey(expiryKey(at, k)); !ok || got != at || gk != k {
				t.Errorf("expiry: %d %v", got, gk)
			}
		}
	})
}
