package users

import (
	"slices"
	"strings"
	"testing"

	"waybill/cmd/waybill/config"
	"waybill/domain"
	"waybill/harness/bus/access"
)

func TestWhatIsLeftToDoForAHost(t *testing.T) {
	named := []domain.HostConfig{{Name: "local", Context: "default"}, {Name: "batch", Context: "nightly"}}
	for what, tc := range map[string]struct {
		hosts   []domain.HostConfig
		name    string
		context string
		said    string // "" for nothing
	}{
		"everybody may":             {nil, "batch", "", ""},
		"the default context":       {nil, "batch", "default", ""},
		"another context":           {nil, "batch", "nightly", "write hosts: {local: {}, batch: {context: nightly}}"},
		"not named":                 {named, "third", "", "add third: {}"},
		"not named, with a context": {named, "third", "nightly", "add third: {context: nightly}"},
		"named":                     {named, "batch", "", ""},
		"named, the same context":   {named, "batch", "nightly", ""},
		"named, another context":    {named, "batch", "default", "change the context of batch from nightly to default"},
	} {
		got := hostStep(&config.File{Hosts: tc.hosts}, tc.name, tc.context)
		if (tc.said == "") != (len(got) == 0) || len(got) > 0 && !strings.Contains(got[0], tc.said) {
			t.Errorf("%s: %q", what, got)
		}
	}
}

func TestWhoMustLearnOfANewUser(t *testing.T) {
	for what, tc := range map[string]struct {
		url            string
		running, fresh bool
		said           string
	}{
		"nothing new":        {"", true, false, ""},
		"not running":        {"", false, true, ""},
		"running":            {"", true, true, "restart the service"},
		"an outside server":  {"nats://x:1", false, true, "nats-accounts.conf again"},
		"nothing new for it": {"nats://x:1", true, false, ""},
	} {
		w := Wanted{File: &config.File{NATS: config.NATS{URL: tc.url}}, Role: access.RoleAuditor, Running: tc.running}
		got := w.next(tc.fresh)
		if (tc.said == "") != (len(got) == 0) || len(got) > 0 && !strings.Contains(got[0], tc.said) {
			t.Errorf("%s: %q", what, got)
		}
	}
}

func TestAddSaysWhatItMade(t *testing.T) {
	dir := t.TempDir()
	if _, err := access.WriteCredentials(dir, access.DefaultPrefix, "node-0a1b2c3d", nil); err != nil {
		t.Fatal(err)
	}
	w := Wanted{File: &config.File{NATS: config.NATS{Listen: "127.0.0.1:4222"}}, Dir: dir, Prefix: access.DefaultPrefix, Log: "node-0a1b2c3d", Role: access.RoleDashboard, Name: "hall"}
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	doc, err := w.Add()
	if err != nil || doc.Name != "dashboard-hall" || !slices.ContainsFunc(doc.Made, func(s string) bool { return strings.HasSuffix(s, "dashboard-hall.nk") }) ||
		!slices.ContainsFunc(doc.Made, func(s string) bool { return strings.HasSuffix(s, access.AccountsFile) }) || !slices.Contains(doc.Made, doc.Context) {
		t.Errorf("%+v, %v", doc, err)
	}
	var out strings.Builder
	if err := doc.Print(&out); err != nil || !strings.Contains(out.String(), doc.PublicKey) || !strings.Contains(out.String(), "made "+doc.Seed) {
		t.Errorf("%s, %v", out.String(), err)
	}
	if doc, err = w.Add(); err != nil || len(doc.Made) != 0 {
		t.Errorf("%+v, %v", doc, err)
	}
	for name, context := range map[string]string{"A": "", "ok": "nowhere"} {
		w.Name, w.Context = name, context
		if w.Check() == nil {
			t.Errorf("%q in context %q is well named", name, context)
		}
	}
}
