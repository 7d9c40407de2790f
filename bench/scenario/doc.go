// Package scenario runs the same load on tarry and on the systems it is compared with: the
// same messages, in the same process, on any System.
//
// Push, PushBatch and Cancel take b.N messages; run them with a fixed number, such as
// -benchtime=100000x. They are closed loop: rates and times are those at saturation. The other
// scenarios take their size from flags; run them with -benchtime=1x. Lateness and Burst are
// open loop: times count from due times set beforehand.
package scenario
