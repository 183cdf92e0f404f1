package bolt_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"laneway/shared/table"
	"laneway/shared/table/bolt"
)

func benchStore(b *testing.B) *bolt.Store {
	b.Helper()
	s, err := bolt.Open(bolt.Config{Path: filepath.Join(b.TempDir(), "tables.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// BenchmarkBoltWrite measures durable writes: a row of 500 bytes and a counter in one
// transaction, from so many writers at once.
func BenchmarkBoltWrite(b *testing.B) {
	body := make([]byte, 500)
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := benchStore(b)
			var n atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for w := range writers {
				wg.Go(func() {
					pk := fmt.Sprintf("t#%d", w)
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						_, err := s.Write(b.Context(),
							table.Op{Kind: table.Put, Key: table.Key{Table: table.Sessions, PK: pk, SK: fmt.Sprintf("%012d", i)}, Item: table.Attrs{"body": body}, If: table.NotExists()},
							table.Op{Kind: table.Update, Key: table.Key{Table: table.Sessions, PK: pk, SK: "META"}, Add: []table.AddOp{{Path: table.P("head"), N: 1}}},
						)
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// BenchmarkBoltGet reads a small hot item among 10,000.
func BenchmarkBoltGet(b *testing.B) {
	s := benchStore(b)
	const rows = 10_000
	key := func(i int) table.Key {
		return table.Key{Table: table.Sessions, PK: fmt.Sprintf("t#%05d", i), SK: "META"}
	}
	for i := 0; i < rows; i += table.MaxOps {
		ops := make([]table.Op, table.MaxOps)
		for j := range ops {
			ops[j] = table.Op{Kind: table.Put, Key: key(i + j), Item: table.Attrs{"head": int64(7), "owner": "run/1", "pending": table.Map{"1": "main"}}}
		}
		if _, err := s.Write(b.Context(), ops...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for i := 0; p.Next(); i++ {
			if _, err := s.Get(b.Context(), key(i%rows)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
