// Package redact takes secret values out of bytes that are about to be written,
// in whatever form they stand there. It keeps the values in memory and writes
// them nowhere.
//
// A value is found as it is, and behind up to three layers of escapes, those of
// JSON and of URLs in any order; in hexadecimal; in base64 of both alphabets, at
// any offset; and in each of these also where line breaks were put in. It is not
// found where it is compressed, encrypted, in another encoding than those, or in
// part.
package redact
