#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTPS server for ModelsTests, with the ways of servers that go wrong.

    models-server.py FOLDER CERTIFICATE KEY

Prints its port, then each request: the path, and what Range asked for. The first part of a path says how it answers:
/plain with Range; /cut the first time a third only; /norange the first time a third only, then all whatever Range says;
/moved goes to /plain; /insecure goes to http://; /wrong other bytes; /long more of them; /gone 404.
"""
import http.server, pathlib, ssl, sys

FOLDER, CERTIFICATE, KEY = sys.argv[1:4]
SEEN = set()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        asked = self.headers.get('Range', '-')
        print(self.path, asked, flush=True)
        way, name = self.path.strip('/').split('/', 1)
        self.close_connection = True
        if way in ('moved', 'insecure'):
            port = self.server.server_address[1]
            self.send_response(302)
            self.send_header('Location', f'/plain/{name}' if way == 'moved' else f'http://localhost:{port}/plain/{name}')
            self.send_header('Content-Length', '0')
            self.end_headers()
            return
        file = pathlib.Path(FOLDER, name)
        if way == 'gone' or not file.exists():
            return self.send_error(404)
        data = file.read_bytes()
        if way == 'wrong':
            data = bytes(byte ^ 1 for byte in data)
        if way == 'long':
            data += b'more'
        isFirst = self.path not in SEEN
        SEEN.add(self.path)
        start = int(asked[6:-1]) if asked.startswith('bytes=') and way != 'norange' else 0
        if start:
            self.send_response(206)
            self.send_header('Content-Range', f'bytes {start}-{len(data) - 1}/{len(data)}')
        else:
            self.send_response(200)
        if way == 'long':
            self.send_header('Connection', 'close')
        else:
            self.send_header('Content-Length', str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:start + len(data) // 3] if isFirst and way in ('cut', 'norange') else data[start:])


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
