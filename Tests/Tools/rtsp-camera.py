#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An RTSP camera on the loopback that describes itself and asks for a login as it is told to.

    rtsp-camera.py '{"file": "clip.h264", …}'

Sends the access units of an H.264 or H.265 file again and again over the connection (interleaved) or as the client asks by UDP, and prints its port first, then each request's method and address. Members:
  codec: h264 (the default) or h265
  sdp: the description; {sets} stands for the parameter sets of the file (H.264), {url} for the address of the stream
  strict: addresses that SETUP may have, after /cam; any without it
  auth: values of WWW-Authenticate, in their order; user, password: the login that is right
  fps: pictures a second
  port: where it listens; any free port without it
  redirect: where DESCRIBE leads (302)
  timeout: seconds that a session lives without a sign of life
  public: what the answer to OPTIONS says it knows
  odd: lines (empty lines between packets), empty (packets of no bytes), restart (the packets' numbers fall by 1000 each second)
  parameter: true where GET_PARAMETER alone keeps the session; the connection ends where it is not kept
  answers: a status by the method that gets it
  loses: each so-many-th packet is left out, none without it
  stale: values of WWW-Authenticate from the first sign of life on; the connection ends where that is not signed anew at once
"""
import base64
import hashlib
import json
import re
import socket
import struct
import sys
import threading
import time

O = dict(file="", codec="h264", sdp="", strict=None, auth=[], user="user", password="", fps=25, port=0, redirect=None, timeout=60, public=None, stale=None, loses=None, odd="", parameter=False, answers={})
O.update(json.loads(sys.argv[1]))
IS_H265 = O["codec"] == "h265"
ODD = {"lines": b"\r\n\r\n", "empty": b"$\0\0\0"}
HASHES = {"MD5": "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256"}


def units(data):
    """Access units as lists of NAL units: one slice each, with what comes before it."""
    found, unit = [], []
    for nal in re.split(b"\0*\0\0\1", data)[1:]:
        unit.append(nal)
        if nal[0] >> 1 < 32 if IS_H265 else nal[0] & 31 in (1, 5):
            found.append(unit)
            unit = []
    return found


UNITS = units(open(O["file"], "rb").read())
SETS = ",".join(base64.b64encode(n).decode() for n in UNITS[0] if n[0] & 31 in (7, 8))


def is_right(method, header):
    if not O["auth"]:
        return True
    user, password = O["user"], O["password"]
    if header.startswith("Basic "):
        return any(a.startswith("Basic") for a in O["auth"]) and base64.b64decode(header[6:]).decode() == f"{user}:{password}"
    if not header.startswith("Digest "):
        return False
    f = {k: a or b for k, a, b in re.findall(r'(\w+)=(?:"([^"]*)"|([^,\s]*))', header)}
    name = f.get("algorithm", "MD5").upper()
    base = name.removesuffix("-SESS")
    offered = [a for a in O["auth"] if f'nonce="{f.get("nonce")}"' in a and (f"ALGORITHM={name}," in a.upper() + "," or "algorithm" not in a)]
    if not offered or base not in HASHES or ("qop" in offered[0] and "qop" not in f):
        return False

    def h(text):
        return hashlib.new(HASHES[base], text.encode()).hexdigest()

    secret = h(f'{user}:{f["realm"]}:{password}')
    if name.endswith("-SESS"):
        secret = h(f'{secret}:{f["nonce"]}:{f["cnonce"]}')
    target = f'{method}:{f["uri"]}' + (":" + h("") if f.get("qop") == "auth-int" else "")
    who = h(f'{user}:{f["realm"]}') if f.get("userhash") == "true" else user
    middle = f'{f["nc"]}:{f["cnonce"]}:{f["qop"]}:' if "qop" in f else ""
    return f["username"] == who and f["response"] == h(f'{secret}:{f["nonce"]}:{middle}{h(target)}')


def stream(client, lock, ended, waits, to, kept):
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sequence, begin = 0, time.monotonic()
    for count in range(1 << 30):
        time.sleep(max(begin + count / O["fps"] - time.monotonic(), 0))
        unit, packets = UNITS[count % len(UNITS)], []
        if O["odd"] == "restart" and count % int(O["fps"]) == 0:
            sequence -= 1000
        if O["parameter"] and time.monotonic() - kept[0] > O["timeout"]:
            return client.shutdown(socket.SHUT_RDWR)
        for nal in unit:
            if len(nal) <= 1200:
                packets.append(nal)
                continue
            head = 2 if IS_H265 else 1
            for place in range(head, len(nal), 1200):
                flags = (128 if place == head else 0) | (64 if place + 1200 >= len(nal) else 0)
                kind = [nal[0] & 0x81 | 49 << 1, nal[1], flags | nal[0] >> 1 & 63] if IS_H265 else [nal[0] & 0xE0 | 28, flags | nal[0] & 31]
                packets.append(bytes(kind) + nal[place : place + 1200])
        for index, payload in enumerate(packets):
            marker = 128 if index + 1 == len(packets) else 0
            stamp = int(1000 + count * 90000 / O["fps"]) & 0xFFFFFFFF
            packet = struct.pack(">BBHII", 0x80, 96 | marker, sequence & 0xFFFF, stamp, 77) + payload
            sequence += 1
            if O["loses"] and sequence % O["loses"] == 0:
                continue
            try:
                if to:
                    datagrams.sendto(packet, to)
                    continue
                with lock:
                    client.sendall(ODD.get(O["odd"], b"") + b"$\0" + struct.pack(">H", len(packet)) + packet)
            except OSError:
                return
        if waits and time.monotonic() - waits[0] > 0.5:
            return client.shutdown(socket.SHUT_RDWR)
        if ended.is_set():
            return


def serve(client):
    lock, ended, waiting, waits, is_playing, to, kept = threading.Lock(), threading.Event(), b"", [], False, None, [0.0]
    while True:
        try:
            received = client.recv(65536)
        except OSError:
            received = b""
        if not received:
            return ended.set()
        waiting += received
        while waiting:
            if waiting[:1] == b"$":
                size = 4 + (struct.unpack(">H", waiting[2:4])[0] if len(waiting) > 3 else 0)
                if len(waiting) < size:
                    break
                waiting = waiting[size:]
                continue
            end = waiting.find(b"\r\n\r\n")
            if end < 0:
                break
            # libavformat's reports of reception have no frame around them.
            begin = re.search(rb"[A-Z_]+ rtsp://\S* RTSP/1.0\r\n", waiting[: end + 2])
            lines = waiting[begin.start() : end].decode().split("\r\n") if begin else []
            waiting = waiting[end + 4 :]
            if not lines:
                continue
            method, url = lines[0].split(" ")[:2]
            fields = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
            print(method, url, "login" if "authorization" in fields else "", flush=True)
            body, more, status = "", [], "200 OK"
            if method in ("PLAY", "GET_PARAMETER"):
                kept[0] = time.monotonic()
            if method in O["answers"]:
                status = O["answers"][method]
            elif method == "OPTIONS" and is_playing and O["stale"]:
                O["auth"] = O["stale"]
                if not is_right(method, fields.get("authorization", "")):
                    status, more = "401 Unauthorized", [f"WWW-Authenticate: {a}" for a in O["auth"]]
                    waits.append(time.monotonic())
                else:
                    waits.clear()
            elif method == "OPTIONS" and O["public"]:
                more = [f"Public: {O['public']}"]
            elif method == "DESCRIBE" and O["redirect"]:
                status, more = "302 Moved Temporarily", [f"Location: {O['redirect']}"]
            elif method != "OPTIONS" and not is_right(method, fields.get("authorization", "")):
                status, more = "401 Unauthorized", [f"WWW-Authenticate: {a}" for a in O["auth"]]
            elif method == "DESCRIBE":
                body = O["sdp"].replace("{sets}", SETS).replace("{url}", url)
                more = [f"Content-Base: {url}/", "Content-Type: application/sdp", f"Content-Length: {len(body.encode())}"]
            elif method == "SETUP":
                if O["strict"] is not None and url.split("/cam", 1)[1] not in O["strict"]:
                    status = "404 Not Found"
                else:
                    ports = re.search(r"client_port=(\d+)-(\d+)", fields["transport"])
                    to = (client.getpeername()[0], int(ports[1])) if ports else None
                    way = f"RTP/AVP;unicast;{ports[0]};server_port=9-9" if ports else "RTP/AVP/TCP;unicast;interleaved=0-1"
                    more = [f"Transport: {way}", f"Session: 12345678;timeout={O['timeout']}"]
            elif method == "PLAY":
                is_playing = True
                threading.Thread(target=stream, args=(client, lock, ended, waits, to, kept), daemon=True).start()
            head = "\r\n".join([f"RTSP/1.0 {status}", f"CSeq: {fields['cseq']}", *more])
            try:
                with lock:
                    client.sendall(f"{head}\r\n\r\n{body}".encode())
            except OSError:
                return ended.set()


server = socket.create_server(("127.0.0.1", O["port"]))
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
