#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A camera with Motion JPEG over HTTP (multipart/x-mixed-replace). usage: mjpeg-camera.py FILE RATE

Sends the JPEGs of a file, one after the other, again and again, at RATE a second, to each client. Prints its port."""

import http.server
import sys
import time

data = open(sys.argv[1], "rb").read()
begins = []
place = data.find(b"\xff\xd8\xff")
while place >= 0:
    begins.append(place)
    end = data.find(b"\xff\xd9", place)
    place = data.find(b"\xff\xd8\xff", end)
pictures = [data[a:b] for a, b in zip(begins, begins[1:] + [len(data)])]
period = 1 / float(sys.argv[2])


class Camera(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        due = time.monotonic()
        count = 0
        try:
            while True:
                picture = pictures[count % len(pictures)]
                self.wfile.write(
                    b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(picture) + picture + b"\r\n")
                self.wfile.flush()
                count += 1
                due += period
                time.sleep(max(due - time.monotonic(), 0))
        except OSError:
            pass

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Camera)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
