#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A broker for one client of MQTT 3.1.1 that says what packets come. It acknowledges every publication but, with
`--deaf PAYLOAD`, those that hold this text. Prints its port first, then a line for each packet, then `end`."""
import argparse
import socket

CONNECT, PUBLISH, SUBSCRIBE, PINGREQ = 1, 3, 8, 12
NAMES = {CONNECT: "CONNECT", PUBLISH: "PUBLISH", SUBSCRIBE: "SUBSCRIBE", PINGREQ: "PINGREQ", 14: "DISCONNECT"}


def exactly(client, count):
    data = b""
    while len(data) < count:
        more = client.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def packet(client):
    first, length, shift = exactly(client, 1)[0], 0, 0
    while True:
        byte = exactly(client, 1)[0]
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return first, exactly(client, length)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--deaf")
    deaf = parser.parse_args().deaf
    server = socket.create_server(("127.0.0.1", 0))
    print(server.getsockname()[1], flush=True)
    client, _ = server.accept()
    try:
        while True:
            first, body = packet(client)
            kind, quality = first >> 4, first >> 1 & 3
            text = ""
            if kind == CONNECT:
                client.sendall(bytes([0x20, 2, 0, 0]))
            elif kind == PUBLISH:
                begin = 2 + int.from_bytes(body[:2], "big")
                number, payload = body[begin : begin + 2], body[begin + 2 * (quality > 0) :]
                text = f"{body[2:begin].decode()} {payload.decode()}"
                if quality > 0 and payload.decode() != deaf:
                    client.sendall(bytes([0x40, 2]) + number)
            elif kind == SUBSCRIBE:
                client.sendall(bytes([0x90, 3]) + body[:2] + b"\1")
            elif kind == PINGREQ:
                client.sendall(bytes([0xD0, 0]))
            print(NAMES.get(kind, kind), text, flush=True)
    except (EOFError, ConnectionResetError):
        print("end", flush=True)


main()
