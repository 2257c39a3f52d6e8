// Reads the events that were published before, until it has the last one. Needs: npm install @nats-io/transport-node
// @nats-io/jetstream
//
// NATS_URL is where the server is, WAYBILL_KEY the seed, auditor.nk or dashboard.nk, WAYBILL_USER is auditor or dashboard, and
// WAYBILL_LOG the id of the log. WAYBILL_FROM is a sequence of the stream to begin at, 1 if unset.
import { readFileSync } from "node:fs";
import { jetstream } from "@nats-io/jetstream";
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";

const user = process.env.WAYBILL_USER;
const stream = `WAYBILL_${process.env.WAYBILL_LOG}${user === "dashboard" ? "_PUBLIC" : ""}`;
const seed = new TextEncoder().encode(readFileSync(process.env.WAYBILL_KEY, "utf8").trim());
const nc = await connect({ servers: process.env.NATS_URL, authenticator: nkeyAuthenticator(seed), inboxPrefix: `_INBOX.${user}` });

// An ordered consumer is pulled from, and made again where it was after an interruption.
const consumer = await jetstream(nc).consumers.get(stream, { opt_start_seq: Number(process.env.WAYBILL_FROM ?? 1) });
const messages = await consumer.consume();
for await (const message of messages) {
  const { id, type, subject = "", data } = message.json();
  console.log(id, type, subject, JSON.stringify(data));
  if (message.info.pending === 0) break; // a program that follows goes on instead
}
await nc.close();
