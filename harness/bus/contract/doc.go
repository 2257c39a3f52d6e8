// Package contract says what the messages of Waybill on NATS look like: a JSON
// Schema (draft 2020-12) of every request, every reply and every kind of event.
// The schemas are files, made from the Go types by tests that fail when the two
// differ. docs/asyncapi.yaml refers to the same files. It holds no types and no
// code that reads messages, and it imports nothing of this module.
//
// The schemas of requests are closed: a call with a member that is not named is
// refused, and in other requests it means nothing. Those of replies and events are
// open: a later version may add members, and whoever reads them passes over what
// they do not know. A test that has to notice every change closes them first
// (contracttest.Closed).
package contract
