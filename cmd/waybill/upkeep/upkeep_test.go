package upkeep

import (
	"strings"
	"testing"

	"waybill/domain"
	"waybill/harness/care"
)

func TestBytesAreForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 1_234_567: "1.2 MB", 5e12: "5.0 TB", 9e18: "9000.0 PB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// What is said of growth depends on what is known.
func TestStatusSaysWhatIsKnown(t *testing.T) {
	rate, none, days := int64(2_000_000), int64(0), 12.34
	for want, m := range map[string]care.Measures{
		"growth: not known before an hour of events":                       {},
		"growth: none in the last days":                                    {BytesADay: &none},
		"growth: 2.0 MB a day; 12.3 days left until the disk is reached":   {BytesADay: &rate, DaysLeft: &days, Bound: care.BoundDisk},
		"the log has 5.0 kB, 50 % of limits.log_size 10.0 kB; 1.0 kB free": {LogSize: 5000, Limit: 10_000, DiskFree: 1000},
		"the log has 5.0 kB, no limit; 0 B free on the disk":               {LogSize: 5000},
		"log local-1, head 7, not running":                                 {},
	} {
		var out strings.Builder
		if err := (Status{Log: "local-1", Head: 7, Measures: m}).Print(&out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%+v is\n%s, want %q", m, out.String(), want)
		}
	}
}

func TestWarningComesAboveNineTenths(t *testing.T) {
	for size, want := range map[int64]string{900: "", 950: "the log has 950 B of limits.log_size 1.0 kB (95 %); calls go on"} {
		if got := Warning(care.Measures{LogSize: size, Limit: 1000}); got != want {
			t.Errorf("%d of 1000: %q, want %q", size, got, want)
		}
	}
}

// A backup that lacks what was signed is said to.
func TestRestoredNamesWhatIsLost(t *testing.T) {
	for beyond, want := range map[int64]bool{0: false, 9: true} {
		var out strings.Builder
		err := Restored{Log: "local-2", Cites: domain.LogRestored{Log: "local-1", Size: 7, Beyond: beyond}}.Print(&out)
		if err != nil || strings.Contains(out.String(), "events 8 to 9") != want {
			t.Errorf("beyond %d: %s", beyond, out.String())
		}
	}
}
