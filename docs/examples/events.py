"""Reads the events that were published before, until it has the last one. Needs: pip install nats-py nkeys

NATS_URL is where the server is, WAYBILL_KEY the seed, auditor.nk or dashboard.nk, WAYBILL_USER is auditor or dashboard, and
WAYBILL_LOG the id of the log. WAYBILL_FROM is a sequence of the stream to begin at, 1 if unset.
"""

import asyncio
import json
import os

import nats
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

USER = os.environ["WAYBILL_USER"]
STREAM = "WAYBILL_" + os.environ["WAYBILL_LOG"] + ("_PUBLIC" if USER == "dashboard" else "")


async def main():
    nc = await nats.connect(os.environ["NATS_URL"], nkeys_seed=os.environ["WAYBILL_KEY"], inbox_prefix=f"_INBOX.{USER}")
    js = nc.jetstream()
    # Readers pull. A consumer that pushes is refused.
    config = ConsumerConfig(ack_policy=AckPolicy.NONE, deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                            opt_start_seq=int(os.environ.get("WAYBILL_FROM", "1")), inactive_threshold=300)
    info = await js.add_consumer(STREAM, config)
    events = await js.pull_subscribe_bind(info.name, STREAM)
    left = info.num_pending
    while left:
        for message in await events.fetch(min(left, 100)):
            event = json.loads(message.data)
            print(event["id"], event["type"], event.get("subject", ""), json.dumps(event["data"]))
            left = message.metadata.num_pending
    await nc.close()


asyncio.run(main())
