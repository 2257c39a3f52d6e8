package migrations

import (
	"net/url"
	"path/filepath"
	"strings"
)

// DSN returns the data source name under which the sqlite3 driver opens the
// file at path, with the options given as "key=value". Characters that mean
// something in a URI are escaped, so any path is safe.
func DSN(path string, options ...string) string {
	u := url.URL{Path: filepath.ToSlash(filepath.Clean(path))}
	dsn := "file:" + u.EscapedPath()
	if len(options) > 0 {
		dsn += "?" + strings.Join(options, "&")
	}
	return dsn
}
