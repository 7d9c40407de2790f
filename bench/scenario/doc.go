// Package scenario has what the benchmarks of engines put on tarry and on a system of
// the field: the same messages, in the same process, for whatever is a System.
//
// Push, PushBatch and Cancel take b.N messages, so they want -benchtime=100000x or the
// like. They are closed loop: rates and times are those at saturation. The others have a
// size of their own, given by flags, and want -benchtime=1x. Lateness and Burst are open loop:
// they count from due times set beforehand.
package scenario
