package table

// Billing rules of DynamoDB, for adapters that are not billed but count all the
// same, so that a budget can be judged on any machine.

// WriteUnits is what changing an item from before to after costs (nil: absent; the
// same item twice: a check): one unit for each KB of the larger, at least one; twice
// that in a Write of several ops; and a unit for each KB of every index entry that
// appears or goes.
func WriteUnits(before, after *Item, transaction bool) float64 {
	units := max(1, ceilDiv(max(before.Size(), after.Size()), 1<<10))
	if transaction {
		units *= 2
	}
	return float64(units + indexUnits(before, after))
}

func indexUnits(before, after *Item) int {
	it := after
	if it == nil {
		it = before
	}
	if it == nil || before == after {
		return 0
	}
	units := 0
	for _, x := range definitions[it.Key.Table].Indexes {
		oldPK, oldSK, had := x.Entry(before)
		newPK, newSK, has := x.Entry(after)
		if had && has && oldPK == newPK && oldSK == newSK {
			continue
		}
		size := len("pk") + len(it.Key.PK) + len("sk") + len(it.Key.SK) + len(x.PK) + len(x.SK)
		if had {
			units += ceilDiv(size+len(oldPK)+len(oldSK), 1<<10)
		}
		if has {
			units += ceilDiv(size+len(newPK)+len(newSK), 1<<10)
		}
	}
	return units
}

// ReadUnits is what a strongly consistent read of so many bytes costs; an index
// costs half of it.
func ReadUnits(bytes int) float64 { return float64(max(1, ceilDiv(bytes, 4<<10))) }

func ceilDiv(n, d int) int { return (n + d - 1) / d }

// Entry gives the keys under which an item is in the index; ok is false where it is
// not in it.
func (x IndexDef) Entry(it *Item) (pk, sk string, ok bool) {
	if it == nil {
		return "", "", false
	}
	pk, okPK := it.Attrs[x.PK].(string)
	sk, okSK := it.Attrs[x.SK].(string)
	return pk, sk, okPK && okSK
}
