package main

import (
	"errors"
	"fmt"
	"os"

	"waybill/cmd/waybill/config"
	"waybill/cmd/waybill/users"
	"waybill/harness/bus"
	"waybill/harness/bus/access"
	"waybill/harness/peer/pin"
)

// localHost is the host whose credentials init makes.
const localHost = "local"

type initCmd struct{ common }

// Help is shown under the usage.
func (initCmd) Help() string {
	return "Example:\n  waybill init -c waybill.yaml\n\nRun again it touches no log, id or key; it adds files that are missing and names each."
}

// Run makes the data directory.
func (c initCmd) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	dir := dataDir(f)
	if err := os.MkdirAll(f.Data, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	id, made, err := dir.Init(f.Node)
	if err != nil {
		return err
	}
	creds, err := a.credentials(f, id)
	if err != nil {
		return err
	}
	key, err := dir.PublicKey()
	if err != nil {
		return err
	}
	return c.print(a, id, key, append(made, creds...))
}

// hostNames are those that get credentials: the commands of this machine, and every host
// of the configuration.
func hostNames(f *config.File) []string {
	names := []string{localHost}
	for _, h := range f.Hosts {
		if h.Name != localHost {
			names = append(names, h.Name)
		}
	}
	return names
}

// credentials makes the keys of the NATS users that are missing.
func (a *app) credentials(f *config.File, id string) ([]string, error) {
	made, err := bus.WriteCredentials(credentialsDir(f), prefix, id, hostNames(f))
	if err == nil {
		err = bus.CheckAccounts(credentialsDir(f), prefix, id)
	}
	if errors.Is(err, bus.ErrStaleAccounts) {
		a.progress("waybill: warning: %v", err)
		err = nil
	}
	if err != nil {
		return made, err
	}
	contexts, err := access.WriteContexts(credentialsDir(f), users.Reach(f))
	return append(made, contexts...), err
}

func (c initCmd) print(a *app, id, key string, made []string) error {
	if c.wantJSON() {
		if made == nil {
			made = []string{}
		}
		return a.printJSON(struct {
			Log       string   `json:"log"`
			PublicKey string   `json:"public_key"`
			Made      []string `json:"made"`
		}{id, key, made})
	}
	for _, m := range made {
		fmt.Fprintf(a.out, "made %s\n", m)
	}
	if len(made) == 0 {
		fmt.Fprintln(a.out, "nothing was missing")
	}
	fmt.Fprintf(a.out, "log %s\npublic key %s\nnext: waybill pin, then waybill check\n", id, key)
	return nil
}

type pinCmd struct{ common }

// Help is shown under the usage.
func (pinCmd) Help() string {
	return "Example:\n  waybill pin -c waybill.yaml && git diff waybill.lock\n\nThe lock names the program, its hash and its arguments for each peer. Review its changes like code."
}

// Run writes the lock. It needs no log.
func (c pinCmd) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	before, err := config.ReadLock(f.LockPath())
	if err != nil {
		before = &config.Lock{} // it is written anew
	}
	lock, failed := f.Pin(os.LookupEnv)
	if err := config.WriteLock(f.LockPath(), lock); err != nil {
		return err
	}
	if c.wantJSON() {
		if err := a.printPinJSON(f, lock, failed); err != nil {
			return err
		}
	} else {
		printPins(a, f, before, lock, failed)
	}
	if len(failed) > 0 {
		return exitWith(exitSomeNotReady)
	}
	return nil
}

func printPins(a *app, f *config.File, before *config.Lock, lock config.Lock, failed []error) {
	for _, p := range f.Peers {
		if pin, ok := lock.Peers[p.Name]; ok {
			fmt.Fprintf(a.out, "pinned %s (%s), %s\n", p.Name, pin.Digest()[:12], since(before.Peers, p.Name, pin))
		}
	}
	for _, x := range f.Authorizations {
		if pin, ok := lock.Authorizations[x.Name]; ok {
			fmt.Fprintf(a.out, "pinned the token command of authorization %s (%s), %s\n", x.Name, pin.Digest()[:12], since(before.Authorizations, x.Name, pin))
		}
	}
	for _, err := range failed {
		fmt.Fprintf(a.out, "not pinned: %s\n", a.clean(err.Error()))
	}
	fmt.Fprintf(a.out, "wrote %s\n", f.LockPath())
}

// since says how a pin differs from the one before.
func since(before map[string]pin.Pin, name string, now pin.Pin) string {
	old, ok := before[name]
	switch {
	case !ok:
		return "new"
	case old.Digest() != now.Digest():
		return "changed"
	}
	return "unchanged"
}

func (a *app) printPinJSON(f *config.File, lock config.Lock, failed []error) error {
	type pinned struct {
		Name string `json:"name"`
		Pin  string `json:"pin"`
	}
	doc := struct {
		Lock      string   `json:"lock"`
		Peers     []pinned `json:"peers"`
		Tokens    []pinned `json:"token_commands,omitempty"` // by the name of their authorization
		NotPinned []string `json:"not_pinned"`               // reasons, each naming its peer
	}{Lock: f.LockPath(), Peers: []pinned{}, NotPinned: []string{}}
	for _, p := range f.Peers {
		if pin, ok := lock.Peers[p.Name]; ok {
			doc.Peers = append(doc.Peers, pinned{p.Name, pin.Digest()})
		}
	}
	for _, x := range f.Authorizations {
		if pin, ok := lock.Authorizations[x.Name]; ok {
			doc.Tokens = append(doc.Tokens, pinned{x.Name, pin.Digest()})
		}
	}
	for _, err := range failed {
		doc.NotPinned = append(doc.NotPinned, a.clean(err.Error()))
	}
	return a.printJSON(doc)
}
