package yamldoc

import "testing"

func TestASlipOfTheKeyboardIsUnderstood(t *testing.T) {
	known := []string{"command", "cwd", "call_timeout", "set"}
	for name, want := range map[string]string{
		"comand": "command", "commannd": "command", "commend": "command", "comamnd": "command", "Command": "command",
		"callTimeout": "call_timeout", "call-timeout": "call_timeout", "timeout": "", "cmd": "", "ste": "", "": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
