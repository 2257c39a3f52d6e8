package peer

import (
	"maps"
	"slices"
	"sync"
	"time"

	"waybill/domain"
)

// Kinds of noise: what a peer writes that is no answer to anything. No word of the peer's own is among them.
const (
	noiseNotJSON      = "not_json"
	noiseNotObject    = "not_object"
	noiseBatch        = "batch"
	noiseBlank        = "blank"
	noiseHalfLine     = "half_line"
	noiseTooLong      = "too_long"
	noiseWrongJSONRPC = "wrong_jsonrpc"
	noiseNullID       = "null_id"
	noiseUnknownID    = "unknown_id"
	noiseLate         = "late_answer"
	noiseDuplicate    = "duplicate_answer"
	noiseRequest      = "server_request"
	noiseRequestDrop  = "server_request_dropped"
	noiseNotification = "notification"
	noiseProgress     = "progress_ignored" // that nobody asked for, or that is not further than before
	noiseMessage      = "notification_message"
	noiseListChanged  = "notification_list_changed"
	noiseCancelled    = "notification_cancelled"
	noiseAcknowledged = "acknowledgement_ignored" // of no subscription, or of one that was acknowledged before
)

// noiseEvery is the least time between two reports of one incarnation's noise.
const noiseEvery = 5 * time.Second

// noise counts what one incarnation writes beside its answers, and reports the counts now and then.
type noise struct {
	at     domain.At
	report func(domain.Data)

	mu     sync.Mutex
	kinds  map[string]domain.NoiseCount
	timer  *time.Timer // set while there is something to report
	closed bool
}

func newNoise(at domain.At, report func(domain.Data)) *noise {
	return &noise{at: at, report: report, kinds: map[string]domain.NoiseCount{}}
}

// count adds one line of size bytes. After close it is lost: the incarnation has been reported as gone.
func (n *noise) count(what string, size int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	k := n.kinds[what]
	n.kinds[what] = domain.NoiseCount{What: what, Count: k.Count + 1, Bytes: k.Bytes + int64(size)}
	if n.timer == nil {
		n.timer = time.AfterFunc(noiseEvery, n.tick)
	}
}

func (n *noise) tick() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flush()
}

// close reports what is left. It reports nothing afterwards.
func (n *noise) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flush()
	n.closed = true
}

// flush reports under the lock, which keeps the last report before whatever close is followed by.
func (n *noise) flush() {
	if n.timer == nil {
		return
	}
	n.timer.Stop()
	n.timer = nil
	var kinds []domain.NoiseCount
	for _, what := range slices.Sorted(maps.Keys(n.kinds)) {
		kinds = append(kinds, n.kinds[what])
	}
	clear(n.kinds)
	n.report(domain.NoiseCounted{At: n.at, Kinds: kinds})
}
