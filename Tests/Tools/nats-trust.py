#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what a NATS server needs that trusts users by JWT and key, and what one needs for TLS. Nothing but Python and openssl is needed.

    nats-trust.py FOLDER

Writes server.pem, server.key (a certificate for 127.0.0.1 that signs itself), operator.conf (operator, system account and one account with JetStream) and user.creds.
"""
import base64
import hashlib
import json
import pathlib
import subprocess
import sys

folder = pathlib.Path(sys.argv[1])
# DER of a private key of Ed25519, before its 32 bytes (RFC 8410).
PREFIX = bytes.fromhex("302e020100300506032b657004220420")
KINDS = {"operator": 14, "account": 0, "user": 20}


def openssl(*arguments, data=None):
    return subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=True).stdout


def crc(data):
    value = 0
    for byte in data:
        value ^= byte << 8
        for _ in range(8):
            value = (value << 1 ^ 0x1021 if value & 0x8000 else value << 1) & 0xFFFF
    return value.to_bytes(2, "little")


def base32(data):
    return base64.b32encode(data + crc(data)).decode().rstrip("=")


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
    def __init__(self, kind):
        self.secret = openssl("genpkey", "-algorithm", "ed25519", "-outform", "DER")[-32:]
        self.file = folder / f"{kind}-{self.secret.hex()[:8]}.der"
        self.file.write_bytes(PREFIX + self.secret)
        letter = KINDS[kind] << 3
        self.public = base32(bytes([letter]) + openssl("pkey", "-in", str(self.file), "-inform", "DER", "-pubout", "-outform", "DER")[-32:])
        self.seed = base32(bytes([18 << 3 | letter >> 5, (letter & 31) << 3]) + self.secret)

    def token(self, subject, name, claims):
        body = {"iat": 1, "iss": self.public, "name": name, "sub": subject.public, "nats": {**claims, "version": 2}}
        body["jti"] = base32(hashlib.sha256(json.dumps(body).encode()).digest())
        text = ".".join(base64url(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, body))
        message = folder / "message"
        message.write_bytes(text.encode())
        return text + "." + base64url(openssl("pkeyutl", "-sign", "-inkey", str(self.file), "-keyform", "DER", "-rawin", "-in", str(message)))


operator, system, account, user = Key("operator"), Key("account"), Key("account"), Key("user")
limits = dict.fromkeys(["subs", "data", "payload", "imports", "exports", "conn", "leaf"], -1) | {"wildcards": True}
storage = dict.fromkeys(["mem_storage", "disk_storage", "streams", "consumer"], -1)
tokens = {
    "operator": operator.token(operator, "test", {"type": "operator", "system_account": system.public}),
    system.public: operator.token(system, "SYS", {"type": "account", "limits": limits}),
    account.public: operator.token(account, "A", {"type": "account", "limits": limits | storage}),
    "user": account.token(user, "u", {"type": "user", "subs": -1, "data": -1, "payload": -1}),
}
(folder / "operator.conf").write_text(
    f"operator: {tokens['operator']}\nsystem_account: {system.public}\nresolver: MEMORY\n"
    f"resolver_preload: {{\n  {system.public}: {tokens[system.public]}\n  {account.public}: {tokens[account.public]}\n}}\n"
)
(folder / "user.creds").write_text(
    f"-----BEGIN NATS USER JWT-----\n{tokens['user']}\n------END NATS USER JWT------\n\n"
    f"************************* IMPORTANT *************************\n\n-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
)
openssl(
    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=framehost-test",
    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(folder / "server.key"), "-out", str(folder / "server.pem"),
)
