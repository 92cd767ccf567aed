#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers in the place of a NATS server or an MQTT broker, and sends each client what no server sends.

    hostile-server.py nats|mqtt BYTES [MEBIBYTES | flood | silent]

After the handshake and half a second it sends BYTES (Python escapes: 'MSG a 1 2147483647\\r\\n') and as many mebibytes of 'a', then closes. With `flood` it sends BYTES again and again
until the client has gone, and says `took` with the number of bytes that were taken. With `silent` it accepts and does nothing. Prints its port first, then `sent` for each client.
"""
import socket
import sys
import time

INFO = b'INFO {"server_id":"x","version":"2.10.0","headers":true,"max_payload":1048576,"proto":1}\r\n'
kind, line = sys.argv[1], sys.argv[2].encode().decode("unicode_escape").encode("latin-1")
more = sys.argv[3] if len(sys.argv) > 3 else "0"
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
kept = []
while True:
    client, _ = server.accept()
    if more == "silent":
        kept.append(client)
        continue
    client.settimeout(10)
    # What waits in the kernel counts as taken.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    taken = 0
    try:
        if kind == "nats":
            client.sendall(INFO)
            client.recv(4096)
            client.sendall(b"PONG\r\n")
        else:
            client.recv(4096)
            client.sendall(bytes([0x20, 2, 0, 0]))
        time.sleep(0.5)
        while more == "flood":
            taken += client.send(line * (65536 // len(line)))
        client.sendall(line)
        for _ in range(int(more)):
            client.sendall(b"a" * (1 << 20))
        time.sleep(0.5)
    except OSError:
        pass
    client.close()
    print(f"took {taken}" if more == "flood" else "sent", flush=True)
