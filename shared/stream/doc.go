// Package stream is what a run says while it works: numbered events, a log of
// those that must arrive, and ordered pushes to every connection that listens.
//
// Guarantees:
//
//   - One sequence of numbers over all streams and attempts of a run; a number is
//     used once (S1). Text is merged once for the run, then numbered; the agent
//     form and the chat form of a delta carry the same number. A frame has no seq
//     of its own.
//   - Must-deliver events (lifecycle, tool, compaction, end of a message, the chat
//     terminal) are written to the log by the commit that makes them true, and
//     pushed after it (S2). Whatever is numbered later waits behind them.
//   - To one connection frames go one at a time, in order of their numbers (S3). A
//     slow or failing connection delays no other, and never the run. What a
//     connection has got of a text is counted per connection, so the deltas that it
//     gets add up to the text whatever was merged or dropped in between.
//   - A post that failed is sent again under its number. Whether a failed delta
//     arrived is not known, so the next one replaces: replace:true, and text (in
//     chat: deltaText) is everything so far. A connection that is gone is removed,
//     once, and the others go on.
//   - A frame is at most Config.MaxFrame bytes after encoding (S4), see fit.go.
//   - After Close, Stop and PushLogged nothing of the stream runs any more.
//
// Of several connections the fastest sets the pace; one that fell behind gets
// deltas that wait as one, under the number of the last.
//
// Rules of text. A connection gets either assistant deltas of the agent event (it
// started the run by the method agent) or chat deltas (all others). The end of a
// message goes to both as an assistant event; where it follows chat deltas it
// carries replace:true. The whole text so far (text, in chat: message) is in a
// delta as long as the connection's credit lasts: creditStart bytes, one more for
// each byte of text and creditRate for each second. Without credit it is left out,
// never cut: so it is exact where it is, and its cost stays linear.
package stream
