# SPDX-License-Identifier: Apache-2.0
"""From the moment that a picture is made to the canvas of the page, in Chromium on this machine. Benchmarks/preview-latency starts it.

`test-source` paints the moment into each picture (docs of its option `stamp`). The page draws the preview as it always does; the strip is read from its
canvas right after it was drawn, and compared with the server's clock, which the page learns by twenty pings over a WebSocket (the shortest counts).

MJPEG       an <img> with the address of `pictures`, drawn to a canvas at each display frame
JPEG        a preview of the page over its WebSocket
WebCodecs   an H.264 preview of the page
MSE         the same from a name that is no secure context, where a page has no WebCodecs
16 x JPEG   sixteen previews of 320 pixels at once; the rate is that of one of them
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from playwright.sync_api import sync_playwright

PROGRAM = os.environ["FRAMEHOST"]
WARM = 4

# Reads the strip of each picture that is drawn to a large canvas.
PROBE = r"""() => {
    const ages = window.ages = []
    const draw = CanvasRenderingContext2D.prototype.drawImage
    const strip = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })
    strip.imageSmoothingEnabled = false
    CanvasRenderingContext2D.prototype.drawImage = function (...parameters) {
        draw.apply(this, parameters)
        const shown = performance.now()
        const { width, height } = this.canvas
        if (width < 320 || window.ahead == null) return
        if (strip.canvas.width !== width) strip.canvas.width = width
        strip.drawImage(this.canvas, 0, -Math.floor(height / 48))
        const { data } = strip.getImageData(0, 0, width, 1)
        let word = 0n
        for (let bit = 0; bit < 64; bit += 1) {
            const x = Math.floor((2 * bit + 1) * width / 128)
            word = word << 1n | (data[4 * x + 1] >= 128 ? 1n : 0n)
        }
        if (word >> 56n !== 0xb2n) { window.unread = (window.unread ?? 0) + 1; return }
        const bytes = []
        for (let index = 0n; index < 6n; index += 1n) bytes.push(Number(word >> (48n - 8n * index) & 255n))
        let sum = 0
        for (const byte of bytes) {
            sum ^= byte
            for (let bit = 0; bit < 8; bit += 1) sum = sum & 128 ? (sum << 1 ^ 7) & 255 : sum << 1
        }
        if (sum !== Number(word & 255n)) { window.unread = (window.unread ?? 0) + 1; return }
        const stamp = Number(word >> 8n & 0xffffffffffffn) / 1000
        // A picture that is drawn again (an <img> at each display frame) is no new one.
        if (this.canvas.last === stamp) return
        this.canvas.last = stamp
        ages.push(shown + window.ahead - stamp)
    }
}"""

CLOCK = r"""async () => {
    const socket = new WebSocket(location.origin.replace("http", "ws") + "/api/v1/live", ["framehost.v1"])
    await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject })
    let best = Infinity
    for (let index = 0; index < 20; index += 1) {
        const sent = performance.now()
        const answer = new Promise((resolve) => { socket.onmessage = ({ data }) => resolve(JSON.parse(data)) })
        socket.send(JSON.stringify({ ping: index }))
        const { now } = await answer
        const took = performance.now() - sent
        if (took < best) {
            best = took
            window.ahead = now / 1e6 - (sent + took / 2)
        }
    }
    socket.close()
    return best
}"""

IMAGE = r"""(address) => {
    const image = new Image()
    image.src = address
    const canvas = document.createElement("canvas")
    document.querySelector("#tiles").append(canvas)
    const context = canvas.getContext("2d")
    const step = () => {
        if (image.naturalWidth > 0) {
            if (canvas.width !== image.naturalWidth) [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight]
            context.drawImage(image, 0, 0)
        }
        requestAnimationFrame(step)
    }
    step()
}"""


def start(folder, height):
    width = height * 16 // 9
    chain = {
        "control": {"listen": "127.0.0.1:0", "hosts": ["camera.test"]},
        "stages": [
            {"id": "cam", "use": "test-source", "size": f"{width}x{height}", "rate": 30, "live": True, "stamp": True},
            {"id": "h264", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency",
             "bitrateKbps": 3000 if height >= 720 else 1500},
            {"use": "null-sink"}]}
    path = os.path.join(folder, "chain.json")
    with open(path, "w") as file:
        json.dump(chain, file)
    program = subprocess.Popen([PROGRAM, path, "--events"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in program.stdout:
        event = json.loads(line)
        if event["event"] == "control-listening":
            return program, event["url"].rstrip("/") + "/"
    raise SystemExit("framehost has ended before it listened")


def measure(browser, url, way, width, seconds):
    host = "camera.test" if way == "MSE" else "127.0.0.1"
    count = 16 if way.startswith("16") else 0 if way == "MJPEG" else 1
    context = browser.new_context(viewport={"width": 1600, "height": 9000 if count > 1 else 1400})
    page = context.new_page()
    stage = "h264" if way in ("WebCodecs", "MSE") else "cam"
    wishes = {"size": 320 if count > 1 else 1280, "rate": 0, "shape": "own", "fit": "contain", "rotate": 0, "mirror": False, "paused": False}
    saved = json.dumps([{"stage": stage, "wishes": wishes}] * count)
    page.add_init_script(f"localStorage.setItem('framehost-previews:chain', {json.dumps(saved)})")
    page.goto(url.replace("127.0.0.1", host))
    page.evaluate(PROBE)
    page.evaluate(CLOCK)
    page.locator("#list tbody tr").nth(1).wait_for()
    if way == "MJPEG":
        page.evaluate(IMAGE, f"api/v1/stages/cam/pictures?rate=60&width={width}")
    page.locator("#tiles canvas").first.scroll_into_view_if_needed()
    assert page.evaluate("typeof VideoDecoder === 'undefined'") == (way == "MSE")
    time.sleep(WARM)
    page.evaluate("() => { window.ages.length = 0; window.unread = 0 }")
    time.sleep(seconds)
    ages, unread = page.evaluate("[window.ages, window.unread]")
    context.close()
    ages.sort()
    return ages, unread, len(ages) / seconds / max(count, 1)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    heights = [int(text) for text in sys.argv[2:]] or [360, 720]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--host-resolver-rules=MAP *.test 127.0.0.1", "--autoplay-policy=no-user-gesture-required"])
        print("| picture | way | p50 ms | p99 ms | most ms | pictures a second | strips not readable |\n|---|---|---|---|---|---|---|")
        for height in heights:
            program, url = start(folder, height)
            try:
                for way in ("MJPEG", "JPEG", "WebCodecs", "MSE", "16 x JPEG"):
                    ages, unread, rate = measure(browser, url, way, height * 16 // 9, seconds)
                    if not ages:
                        print(f"| {height} | {way} | none | | | | {unread} |", flush=True)
                        continue
                    print(f"| {height * 16 // 9}x{height} | {way} | {statistics.median(ages):.0f} | {ages[len(ages) * 99 // 100]:.0f} | "
                          f"{ages[-1]:.0f} | {rate:.1f} | {unread} |", flush=True)
            finally:
                program.terminate()
                program.wait(10)
        browser.close()


main()
