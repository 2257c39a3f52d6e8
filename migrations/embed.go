package migrations

import (
	"embed"
	"io/fs"
)

//go:embed log/*.sql payloads/*.sql views/*.sql
var files embed.FS

var (
	// Log is the schema of the log: sacred, so every change to it is a new file.
	Log fs.FS = sub("log")

	// Payloads is the schema of the kept bytes of calls, which can be erased.
	Payloads fs.FS = sub("payloads")

	// Views is the schema of the views, which can be rebuilt from the log.
	Views fs.FS = sub("views")
)

func sub(dir string) fs.FS {
	f, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // the name is a constant and the folder is embedded
	}
	return f
}
