"""Calls a tool of a running Waybill with no NATS library: what a client in any language has to do. Needs: cryptography

NATS_URL is where the server is, WAYBILL_KEY the seed that waybill init or waybill host add wrote for the host, and
WAYBILL_HOST its name, local if unset. A server that wants TLS is beyond this example.
"""

import base64
import binascii
import json
import os
import secrets
import socket
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

HOST = os.environ.get("WAYBILL_HOST", "local")


def load(path):
    """Return the key in a seed file, and its public half as NATS writes it: base32 of a prefix, the key and a CRC-16."""
    with open(path, encoding="ascii") as f:
        text = f.read().strip()
    seed = base64.b32decode(text + "=" * (-len(text) % 8))
    key = Ed25519PrivateKey.from_private_bytes(seed[2:34])
    public = bytes([20 << 3]) + key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    public += binascii.crc_hqx(public, 0).to_bytes(2, "little")
    return key, base64.b32encode(public).decode().rstrip("=")


class Connection:
    """One connection, which asks one thing at a time."""

    def __init__(self, url, path):
        address = urlsplit(url)
        self.socket = socket.create_connection((address.hostname, address.port or 4222), timeout=60)
        self.lines = self.socket.makefile("rb")
        info = json.loads(self.lines.readline().removeprefix(b"INFO "))
        key, public = load(path)
        signature = base64.urlsafe_b64encode(key.sign(info["nonce"].encode())).decode().rstrip("=")
        self.send("CONNECT", json.dumps({"nkey": public, "sig": signature, "verbose": False, "pedantic": False, "lang": "python",
                                         "version": "1", "protocol": 1, "headers": True, "no_responders": True}))
        self.inbox = f"_INBOX.{HOST}.{secrets.token_hex(8)}"  # any other reply subject is dropped unanswered
        self.send("SUB", self.inbox, "1")

    def send(self, *words, payload=None):
        """Write one line of the protocol, and what follows it."""
        tail = b"" if payload is None else payload + b"\r\n"
        self.socket.sendall(" ".join(words).encode() + b"\r\n" + tail)

    def ask(self, verb, body):
        """Send one request and return its headers and answer."""
        payload = json.dumps(body).encode()
        self.send("PUB", f"waybill.v1.{verb}.{HOST}", self.inbox, str(len(payload)), payload=payload)
        while True:
            line = self.lines.readline().decode().strip()
            if line == "PING":
                self.send("PONG")
            elif line.startswith("-ERR"):
                raise PermissionError(line)  # such as a subject that is not permitted
            elif line.startswith(("MSG", "HMSG")):
                return self.message(line.split())
            elif not line.startswith(("INFO", "PONG", "+OK")):
                raise ConnectionError(line or "the connection was closed")

    def message(self, words):
        """Read what follows a line MSG subject sid [reply] size, or HMSG subject sid [reply] headers size."""
        size = int(words[-1])
        content = self.lines.read(size + 2)[:size]
        split = int(words[-2]) if words[0] == "HMSG" else 0
        first, *rest = content[:split].decode().split("\r\n")
        if first.endswith("503"):
            raise ConnectionError("no service answers")
        headers = dict(line.split(": ", 1) for line in rest if ": " in line)
        return headers, json.loads(content[split:])


nats = Connection(os.environ["NATS_URL"], os.environ["WAYBILL_KEY"])
_, tools = nats.ask("tools", {})
for tool in tools["tools"]:
    print("tool", tool["canonical"], "of", tool["peer"])
_, reply = nats.ask("call", {"tool": "search", "arguments": {"query": "tea"}, "generation": tools["generation"]})
print(f"{reply['status']}: {json.dumps(reply['result'])}")
headers, reply = nats.ask("call", {"tool": "no such tool"})
print(f"call: {headers['Nats-Service-Error']} ({headers['Nats-Service-Error-Code']})")
