#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Receives what `webhook` posts, over HTTP or HTTPS, and answers as it is told.

    webhook-receiver.py [--tls CERTIFICATE KEY] [--secret TEXT] ANSWER…

Each request gets the next ANSWER, and the last one is for all that follow:

    204, 422 …      this code
    429:SECONDS     this code, with Retry-After
    301             this code, with Location: this server's /moved
    drop            the connection closes without an answer
    half            it closes in the middle of the header
    short           200, and it closes in the middle of the text
    endless         200, and a text without an end
    header          200, and a header without an end
    silent          nothing, as long as the other side waits
    garbage         no HTTP

Prints its port first, then a line of JSON for each request: what it answers, path, id, whether time and signature are right, and the event. `answered` stands behind each
endless answer that the other side has ended, with the number of bytes that it took.
"""
import argparse
import hashlib
import hmac
import http.server
import json
import ssl
import sys
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--tls", nargs=2)
parser.add_argument("--secret", default="")
parser.add_argument("answers", nargs="+")
arguments = parser.parse_args()
lock = threading.Lock()


def say(**what):
    with lock:
        print(json.dumps(what), flush=True)


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        sent, signature = self.headers["Framehost-Time"], self.headers["Framehost-Signature"]
        with lock:
            answer = arguments.answers.pop(0) if len(arguments.answers) > 1 else arguments.answers[0]
        right = "sha256=" + hmac.new(arguments.secret.encode(), f"{sent}.".encode() + body, hashlib.sha256).hexdigest()
        say(
            answer=answer, path=self.path, id=self.headers["Framehost-Id"], timely=abs(time.time() - int(sent)) < 600,
            signed=signature is not None, right=hmac.compare_digest(right, signature or ""), type=self.headers["Content-Type"],
            login=self.headers["Authorization"], event=json.loads(body))
        getattr(self, answer, self.code)(answer)

    def code(self, answer):
        code, _, seconds = answer.partition(":")
        self.send_response(int(code))
        if seconds:
            self.send_header("Retry-After", seconds)
        if code == "301":
            self.send_header("Location", "/moved")
        if code != "204":
            self.send_header("Content-Length", "2")
        self.end_headers()
        if code != "204":
            self.wfile.write(b"no")

    def drop(self, _):
        self.close_connection = True

    def half(self, _):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Le")
        self.close_connection = True

    def short(self, _):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort")
        self.close_connection = True

    def endless(self, _):
        self.pour(b"HTTP/1.1 200 OK\r\n\r\n", b"a" * 65536)

    def header(self, _):
        self.pour(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"a" * 1000 + b"\r\n")

    def garbage(self, _):
        self.pour(b"", b"\x15\x03\x01\x00garbage", 1)

    def pour(self, first, piece, times=1 << 20):
        taken = 0
        try:
            self.wfile.write(first)
            for _ in range(times):
                self.wfile.write(piece)
                taken += len(piece)
        except OSError:
            pass
        self.close_connection = True
        say(answered=taken)

    def silent(self, _):
        try:
            self.rfile.read(1)
        except OSError:
            pass
        self.close_connection = True
        say(answered=0)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
server.daemon_threads = True
if arguments.tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*arguments.tls)
    # The handshake of a client that refuses the certificate ends its own thread alone.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
# A client that leaves is nothing to report.
server.handle_error = lambda *_: None
print(server.server_address[1], flush=True)
server.serve_forever()
