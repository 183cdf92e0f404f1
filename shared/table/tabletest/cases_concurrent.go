package tabletest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"laneway/shared/clock"
	"laneway/shared/table"
)

// persist sends a write again while it meets a conflict or a throttle, which say that
// nothing was written.
func persist(ctx context.Context, s table.Store, ops ...table.Op) error {
	for {
		_, err := s.Write(ctx, ops...)
		if !errors.Is(err, table.ErrConflict) && !errors.Is(err, table.ErrThrottled) {
			return err
		}
		if err := clock.Sleep(ctx, clock.System{}, time.Duration(rand.IntN(20))*time.Millisecond); err != nil {
			return err
		}
	}
}

func concurrentCases() []testCase {
	const writers, rounds = 8, 15
	each := func(b *bench, work func(w int) error) {
		b.Helper()
		errs := make(chan error, writers)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() { errs <- work(w) })
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	return []testCase{
		{"no count is lost among optimistic writers", func(b *bench) {
			k := b.key("counter")
			each(b, func(int) error {
				for done := 0; done < rounds; {
					it, err := b.s.Get(b.ctx(), k)
					op := table.Op{Kind: table.Update, Key: k, Set: set(table.P("n"), it.Attrs.Int("n")+1), If: table.Equal(table.P("n"), it.Attrs.Int("n"))}
					if errors.Is(err, table.ErrNotFound) {
						op.If = table.NotExists()
					} else if err != nil {
						return err
					}
					err = persist(b.ctx(), b.s, op)
					if err != nil && !errors.Is(err, table.ErrCondition) {
						return err
					}
					if err == nil {
						done++
					}
				}
				return nil
			})
			b.is(k, table.Attrs{"n": int64(writers * rounds)})
		}},
		{"no addition is lost among blind writers", func(b *bench) {
			k := b.key("counter")
			each(b, func(w int) error {
				for range rounds {
					if err := persist(b.ctx(), b.s, table.Op{Kind: table.Update, Key: k, Add: []table.AddOp{{Path: table.P("n"), N: 1}}, AddTo: []table.MemberOp{{Attr: "who", Members: table.Set{strconv.Itoa(w)}}}}); err != nil {
						return err
					}
				}
				return nil
			})
			b.is(k, table.Attrs{"n": int64(writers * rounds), "who": table.Set{"0", "1", "2", "3", "4", "5", "6", "7"}})
		}},
		{"transactions keep what holds between items", func(b *bench) {
			const sum = int64(100)
			left, right := b.put("left", table.Attrs{"n": sum}), b.put("right", table.Attrs{"n": int64(0)})
			moved := make([]int64, writers)
			each(b, func(w int) error {
				for range rounds {
					err := persist(b.ctx(), b.s,
						table.Op{Kind: table.Update, Key: left, Add: []table.AddOp{{Path: table.P("n"), N: -1}}, If: table.Greater(table.P("n"), int64(0))},
						table.Op{Kind: table.Update, Key: right, Add: []table.AddOp{{Path: table.P("n"), N: 1}}},
					)
					if err == nil {
						moved[w]++
					} else if !errors.Is(err, table.ErrCondition) {
						return err
					}
				}
				return nil
			})
			total := int64(0)
			for _, n := range moved {
				total += n
			}
			if total != sum {
				b.Errorf("%d moves succeeded of %d possible ones", total, sum)
			}
			b.is(left, table.Attrs{"n": int64(0)})
			b.is(right, table.Attrs{"n": sum})
		}},
		{"of writers that race for an absent item one wins", func(b *bench) {
			for i := range 5 {
				k := b.key(fmt.Sprint("race", i))
				won := make([]bool, writers)
				each(b, func(w int) error {
					err := persist(b.ctx(), b.s, table.Op{Kind: table.Put, Key: k, Item: table.Attrs{"winner": int64(w)}, If: table.NotExists()})
					if won[w] = err == nil; won[w] || errors.Is(err, table.ErrCondition) {
						return nil
					}
					return err
				})
				it, err := b.s.Get(b.ctx(), k)
				if err != nil {
					b.Fatal(err)
				}
				for w, ok := range won {
					if ok != (it.Attrs.Int("winner") == int64(w)) {
						b.Errorf("item has winner %d, writer %d was told %v", it.Attrs.Int("winner"), w, ok)
					}
				}
			}
		}},
		{"the map of a member is made once, whoever comes first", func(b *bench) {
			k := b.key("map")
			each(b, func(w int) error {
				return persist(b.ctx(), b.s,
					table.Op{Kind: table.Update, Key: k, Set: set(table.P("m", strconv.Itoa(w)), int64(w))},
					table.Op{Kind: table.Put, Key: b.key(fmt.Sprint("row", w)), If: table.NotExists()})
			})
			want := table.Map{}
			for w := range writers {
				want[strconv.Itoa(w)] = int64(w)
			}
			b.is(k, table.Attrs{"m": want})
		}},
	}
}
