package harness

import (
	"testing"
	"time"
)

// A follower that is far behind when the service ends is left there: the next start
// goes on with it.
func TestAFollowerThatIsFarBehindDoesNotHoldUpTheEnd(t *testing.T) {
	s := startService(t, openDisk(t, newLogFile(t)), testConfig("notes"), nil)
	f := &follower{fail: errDisk}
	f.left.Store(1 << 40)
	s.engine.AttendFollower(f)
	noErr(t, s.engine.WaitSettled(within(t)))
	noErr(t, s.engine.Stop("test"))
	s.engine.Feed.Advance(s.engine.Feed.Head() + 10*foldBatch)
	waitFor(t, "it is tried", func() bool { return f.ran.Load() > 0 })
	closed := make(chan error, 1)
	go func() { closed <- s.engine.Close() }()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Fatal("it is fed for ever")
	}
}
