"""Lists the tools of a running Waybill and calls one. Needs: pip install nats-py nkeys

NATS_URL is where the server is, WAYBILL_KEY the seed that waybill init or waybill host add wrote for the host, and
WAYBILL_HOST its name, local if unset.
"""

import asyncio
import json
import os

import nats

HOST = os.environ.get("WAYBILL_HOST", "local")
TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}  # goes on to the peer


class Refused(Exception):
    """What could not be done, with its short code, a number like a status of HTTP, and the whole answer."""

    def __init__(self, code, number, answer):
        super().__init__(f"{code} ({number})")
        self.code, self.answer = code, answer


async def ask(nc, verb, body):
    """Send one request and return the answer; nats.errors.NoRespondersError says that no service runs."""
    reply = await nc.request(f"waybill.v1.{verb}.{HOST}", json.dumps(body).encode(), timeout=60, headers=TRACE)
    answer = json.loads(reply.data)
    headers = reply.headers or {}
    if "Nats-Service-Error" in headers:
        raise Refused(headers["Nats-Service-Error"], headers["Nats-Service-Error-Code"], answer)
    return answer


async def main():
    # The inbox is the host's own: a reply to any other subject is never sent.
    nc = await nats.connect(os.environ["NATS_URL"], nkeys_seed=os.environ["WAYBILL_KEY"], inbox_prefix=f"_INBOX.{HOST}")
    tools = await ask(nc, "tools", {})
    for tool in tools["tools"]:
        print("tool", tool["canonical"], "of", tool["peer"])
    reply = await ask(nc, "call", {"tool": "search", "arguments": {"query": "tea"}, "generation": tools["generation"]})
    print(f"{reply['status']}: {json.dumps(reply['result'])}")
    try:
        await ask(nc, "call", {"tool": "no such tool"})
    except Refused as refused:
        print("call:", refused)
    await nc.close()


asyncio.run(main())
