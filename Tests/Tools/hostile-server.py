#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers in the place of a NATS server or an MQTT broker, and sends each client what no server sends.

    hostile-server.py nats|mqtt BYTES [MEBIBYTES]

After the handshake and half a second it sends BYTES (Python escapes: 'MSG a 1 2147483647\\r\\n') and as many mebibytes of 'a', then closes. Prints its port first, then `sent`
for each client.
"""
import socket
import sys
import time

INFO = b'INFO {"server_id":"x","version":"2.10.0","headers":true,"max_payload":1048576,"proto":1}\r\n'
kind, line = sys.argv[1], sys.argv[2].encode().decode("unicode_escape").encode("latin-1")
more = int(sys.argv[3]) if len(sys.argv) > 3 else 0
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client, _ = server.accept()
    client.settimeout(10)
    try:
        if kind == "nats":
            client.sendall(INFO)
            client.recv(4096)
            client.sendall(b"PONG\r\n")
        else:
            client.recv(4096)
            client.sendall(bytes([0x20, 2, 0, 0]))
        time.sleep(0.5)
        client.sendall(line)
        for _ in range(more):
            client.sendall(b"a" * (1 << 20))
        time.sleep(0.5)
    except OSError:
        pass
    client.close()
    print("sent", flush=True)
