package projections_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"waybill/projections"
)

// TestMain lets the test binary be its own child, which writes views until it
// is killed.
func TestMain(m *testing.M) {
	path, child := os.LookupEnv("PROJECTIONS_CHILD")
	if !child {
		os.Exit(m.Run())
	}
	if err := writeForever(path); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// writeForever folds the history, an event at a time, and begins again in a new
// file of views when it has come to its end.
func writeForever(path string) error {
	list := makeHistory(&testing.B{})
	for {
		v, err := projections.Open(context.Background(), path, logID, int64(len(list)))
		if err != nil {
			return err
		}
		for i := range list {
			if err := v.Apply(context.Background(), list[i:i+1]); err != nil {
				return err
			}
			fmt.Println("at", i+1)
		}
		if err := v.Close(); err != nil {
			return err
		}
		for _, end := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(path + end)
		}
	}
}

func TestViewsOfAProcessThatWasKilledAreThoseOfSomeEventAndGoOn(t *testing.T) {
	list := makeHistory(t)
	want := dumps(t, list)
	exe, err := os.Executable()
	noErr(t, err)
	for round := range 8 {
		path := viewsFile(t)
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "PROJECTIONS_CHILD="+path)
		out, err := cmd.StdoutPipe()
		noErr(t, err)
		noErr(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for range 10 + 17*round {
			if !lines.Scan() {
				t.Fatal("the child ended")
			}
		}
		noErr(t, cmd.Process.Kill())
		_ = cmd.Wait()
		v := open(t, path, len(list))
		found := dump(t, path)
		known := false
		for _, d := range want {
			known = known || d == found
		}
		if !known {
			t.Errorf("round %d left views that are those of no event:\n%s", round, found)
		}
		feed(t, v, list, someAtOnce)
		same(t, "after a kill", dump(t, path), want[len(list)])
		noErr(t, v.Close())
	}
}
