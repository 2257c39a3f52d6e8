// Package frame cuts what a peer writes into lines and bounds what a line may cost. A line up to the limit comes whole. Of a
// longer one only the id is found, while it passes by: it tells whose answer was lost.
//
// What may not enter: what a line means, processes, goroutines, the clock. It may import domain.
package frame
