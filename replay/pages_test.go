package replay_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"waybill/domain"
	"waybill/domain/catalog"
	"waybill/replay"
	"waybill/replay/replaytest"
)

// The lists that are met again are not judged again, and every log leads to the same
// state as where each is.
func TestPagesMetAgainLeadToTheSameState(t *testing.T) {
	files, err := filepath.Glob(logFile("good-*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	again := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, l, err := replaytest.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		var pages domain.Pages
		plain, spared := domain.NewState(), domain.NewState()
		met := map[*catalog.Page]bool{}
		err = replay.Scan(t.Context(), l, func(e domain.Event, _ replay.Record) error {
			plain.Apply(e)
			pages.Judge(spared, &e)
			spared.Apply(e)
			if d, ok := e.Data.(domain.CatalogListed); ok && d.Page != nil {
				if met[d.Page] {
					again++
				}
				met[d.Page] = true
			}
			if a, b := plain.Report(l.Identity), spared.Report(l.Identity); !reflect.DeepEqual(a, b) {
				t.Fatalf("%s: after event %d: %+v, want %+v", name, e.Seq, b, a)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if again == 0 {
		t.Error("no list was met again")
	}
}
