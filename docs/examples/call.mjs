// Lists the tools of a running Waybill and calls one. Needs: npm install @nats-io/transport-node
//
// NATS_URL is where the server is, WAYBILL_KEY the seed that waybill init or waybill host add wrote for the host, and
// WAYBILL_HOST its name, local if unset.
import { readFileSync } from "node:fs";
import { connect, headers, nkeyAuthenticator } from "@nats-io/transport-node";

const host = process.env.WAYBILL_HOST ?? "local";
const seed = new TextEncoder().encode(readFileSync(process.env.WAYBILL_KEY, "utf8").trim());

// The inbox is the host's own: a reply to any other subject is never sent.
const nc = await connect({
  servers: process.env.NATS_URL,
  authenticator: nkeyAuthenticator(seed),
  inboxPrefix: `_INBOX.${host}`,
});

// ask sends one request and returns the answer. It throws NoRespondersError if no service runs.
async function ask(verb, body) {
  const h = headers();
  h.set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"); // goes on to the peer
  const reply = await nc.request(`waybill.v1.${verb}.${host}`, JSON.stringify(body), { timeout: 60_000, headers: h });
  const code = reply.headers?.get("Nats-Service-Error");
  if (code) {
    throw Object.assign(new Error(`${code} (${reply.headers.get("Nats-Service-Error-Code")})`), { code, answer: reply.json() });
  }
  return reply.json();
}

const { tools, generation } = await ask("tools", {});
for (const tool of tools) {
  console.log(`tool ${tool.canonical} of ${tool.peer}`);
}
const reply = await ask("call", { tool: "search", arguments: { query: "tea" }, generation });
console.log(`${reply.status}: ${JSON.stringify(reply.result)}`);
try {
  await ask("call", { tool: "no such tool" });
} catch (refused) {
  console.log(`call: ${refused.message}`);
}
await nc.close();
