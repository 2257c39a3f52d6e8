package store

// What readers ask. Each is answered from an index or the primary key, however
// large the log is; a test asks SQLite for its plans.
const (
	columns = `SELECT seq, type, peer, call, leaf, bytes FROM events`

	readQuery   = columns + ` WHERE seq > ? ORDER BY seq LIMIT ?`
	byCallQuery = columns + ` WHERE call = ? AND call <> '' ORDER BY seq`

	evidenceQuery    = `SELECT bytes FROM evidence WHERE digest = ?`
	runQuery         = `SELECT rowid, digest, bytes FROM evidence WHERE rowid > ? ORDER BY rowid LIMIT ?`
	digestsQuery     = `SELECT digest FROM evidence WHERE digest > ? ORDER BY digest LIMIT ?`
	tilesQuery       = `SELECT idx, hashes FROM tiles WHERE level = ? AND idx > ? ORDER BY idx LIMIT ?`
	tileQuery        = `SELECT hashes FROM tiles WHERE level = ? AND idx = ?`
	rootsQuery       = `SELECT size, root FROM roots WHERE size > ? ORDER BY size LIMIT ?`
	checkpointsQuery = `SELECT size, note FROM checkpoints WHERE size > ? ORDER BY size LIMIT ?`

	// What there is at one moment, and then piece by piece.
	cutQuery    = `SELECT seq, (SELECT max(rowid) FROM evidence) FROM events WHERE seq = (SELECT max(seq) FROM events)`
	piecesQuery = `SELECT rowid, digest, bytes FROM evidence WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT 1`

	// Runs of hashes: ?2 of them, beginning with the one numbered ?1.
	leavesQuery  = `SELECT leaf FROM events WHERE seq > ?1 AND seq <= ?1 + ?2 ORDER BY seq`
	tileRunQuery = `SELECT hashes FROM tiles WHERE idx >= ?1 AND idx < ?1 + ?2 AND level = ?3 ORDER BY idx`
	tailQuery    = `SELECT seq, leaf, bytes FROM events WHERE seq > ? ORDER BY seq`
)
