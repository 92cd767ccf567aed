# SPDX-License-Identifier: Apache-2.0
"""The control server's page in Chromium: against the program, and against mock.py what only a stand-in can be told to do. Tests/Page/run starts them."""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

import mock

PROGRAM = os.environ.get("FRAMEHOST", "")
PICTURES = os.environ.get("PICTURES")
CHAIN = os.path.join(mock.HERE, "chain.json")
# Of one event that must come on a busy machine, seconds.
PATIENCE = 90
STAGES = ["left", "right", "switch", "title", "h264", "watch", "file"]

playwright = sync_playwright().start()
browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=[
    "--no-sandbox",
    # A name that is no secure context for a browser, as a machine's name in a house without TLS is none.
    "--host-resolver-rules=MAP *.test 127.0.0.1"])


class Program:
    """The program with chain.json or another chain, in a folder of its own."""

    def __init__(self, token=None, text=None):
        self.folder = tempfile.TemporaryDirectory()
        self.token = token
        if text is None:
            with open(CHAIN) as file:
                text = file.read()
        if token:
            text = text.replace('"127.0.0.1:0",', f'"127.0.0.1:0", "token": "{token}",')
        self.chain = os.path.join(self.folder.name, "page.json")
        with open(self.chain, "w") as file:
            file.write(text)
        self.process = subprocess.Popen([PROGRAM, self.chain, "--events"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        # Events are read to the end, so that none is lost for want of room; what is said besides is kept for a failure.
        self.events, self.said = [], []
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.events), (self.process.stderr, self.said))]
        for reader in self.readers:
            reader.start()
        self.url = until(self.find_url, f"the program tells its address: {self.said}")

    @staticmethod
    def read(stream, lines):
        for line in stream:
            lines.append(line)

    def find_url(self):
        for line in self.events:
            event = json.loads(line)
            if event["event"] == "control-listening":
                return event["url"].rstrip("/") + "/"
        return None

    def get(self, path):
        fields = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=fields), timeout=60) as answer:
            return answer.read()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for reader in self.readers:
            reader.join(5)
        self.process.stdout.close()
        self.process.stderr.close()
        self.folder.cleanup()


class MockServer(mock.Mock):
    def __init__(self, token=None, port=0):
        super().__init__(port)
        self.token = token

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return answer.read()

    def stop(self):
        self.is_over = True
        self.shutdown()
        self.server_close()


def until(condition, what, seconds=PATIENCE):
    """What `condition` gives as soon as it is true."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"this did not happen within {seconds} s: {what}")
        time.sleep(0.05)


class Case(unittest.TestCase):
    make_server = MockServer
    token = None

    def setUp(self):
        self.server = self.make_server(self.token)
        self.addCleanup(self.server.stop)

    def open(self, width=1360, height=900, scheme="light", path="", motion="no-preference", host="127.0.0.1",
             script=None):
        """A page of a browser that has not been here before; what it complains of fails the test."""
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme,
                                      reduced_motion=motion, accept_downloads=True)
        self.addCleanup(context.close)
        page = context.new_page()
        if script:
            page.add_init_script(f"({script})()")
        page.set_default_timeout(PATIENCE * 1000)
        self.complaints, self.asked = [], []
        page.on("console", lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request))
        # WebSockets of the page, and what it said over them.
        self.sockets, self.said = [], []
        page.on("websocket", self.watch)
        page.goto(self.server.url.replace("127.0.0.1", host) + path)
        return page

    def watch(self, socket):
        self.sockets.append(socket)
        socket.on("framesent", lambda text: self.said.append(json.loads(text)))

    def ready(self, **wishes):
        page = self.open(**wishes)
        page.locator("#list tbody tr").nth(len(STAGES) - 1).wait_for()
        return page

    def complained(self, *expected):
        return [text for text in self.complaints if not any(part in text for part in expected)]

    @staticmethod
    def change(page, press, is_done, what, fault="#stage-body > .fault"):
        """Presses until it is done: where a stage is in its own code for a second, nothing is changed, and the page says so."""
        press()

        def is_done_now():
            if "nothing was changed" in " ".join(page.locator(fault).all_inner_texts()):
                press()
            return is_done()
        until(is_done_now, what)

    @staticmethod
    def snapshot(page, name):
        """The download; asked for again where the stage gives no picture within a second."""
        button = page.get_by_role("button", name=name)
        downloads = []
        page.on("download", lambda download: downloads.append(download))
        button.click()

        def has_come():
            # What the browser tells is heard meanwhile.
            page.wait_for_timeout(50)
            if "no picture within a second" in page.locator("#stage-body > .fault").inner_text():
                button.click()
            return downloads
        return until(has_come, "the picture is in the downloads")[0]

    def choose(self, page, stage):
        page.locator("#list").get_by_role("button", name=stage, exact=True).click()
        page.locator("#stage-title", has_text=stage).wait_for()

    @staticmethod
    def digest(page, number=0):
        """Of the pixels of a preview."""
        return hashlib.sha1(page.evaluate(
            """n => { const c = document.querySelectorAll("#tiles canvas")[n]
                      return c.toDataURL() }""", number).encode()).hexdigest()

    @staticmethod
    def rows(page):
        """Some pixels of each preview."""
        return page.evaluate("""() => [...document.querySelectorAll("#tiles canvas")].map(c => {
            const copy = new OffscreenCanvas(c.width, 1).getContext("2d", { willReadFrequently: true })
            copy.drawImage(c, 0, -Math.floor(c.height / 2))
            return copy.getImageData(0, 0, c.width, 1).data.filter((_, i) => i % 4 === 1).join()
        })""")

    @staticmethod
    def canvas(page, number=0):
        return tuple(page.evaluate("n => { const c = document.querySelectorAll('#tiles canvas')[n]; return [c.width, c.height] }", number))

    def assert_no_violation(self, page, what):
        # Colours on their way to another scheme's are none that anybody looks at.
        page.evaluate("""async () => {
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
            await Promise.all(document.getAnimations().filter(a => a instanceof CSSTransition).map(a => a.finished.catch(() => {})))
        }""")
        found = Axe().run(page).response["violations"]
        self.assertEqual([(one["id"], [node["html"][:160] for node in one["nodes"]]) for one in found], [], what)

    def keep(self, page, name, **wishes):
        if PICTURES:
            page.screenshot(path=os.path.join(PICTURES, f"{name}.png"), **wishes)


class PageTests(Case):
    """What holds with the program and with its stand-in."""

    def test_shows_the_chain_as_graph_and_list_with_live_figures(self):
        page = self.ready()
        self.assertEqual(page.locator("#graph .node").count(), len(STAGES))
        self.assertEqual(sorted(page.locator("#list tbody button").all_inner_texts()), sorted(STAGES))
        until(lambda: page.locator("#state .word").inner_text() in ("Streaming", "Rendering"), "the state is told")

        def rate():
            text = page.locator("#list tr", has=page.get_by_role("button", name="left", exact=True)).locator("td").nth(1).inner_text()
            return text.endswith("/s") and 20 <= float(text[:-2]) <= 40
        until(rate, "the rate of 'left' is that of the source")
        self.assertIn("Healthy", page.locator("#health").inner_text())
        self.assertEqual(self.complained(), [])

    def test_asks_its_own_server_alone_and_breaks_no_policy(self):
        page = self.ready()
        self.choose(page, "title")
        page.wait_for_timeout(1500)
        self.assertEqual([request.url for request in self.asked if not request.url.startswith((self.server.url, "blob:"))], [])
        self.assertEqual(self.complained(), [])

    def test_previews_move(self):
        page = self.ready()
        seen = set()
        until(lambda: seen.add(self.digest(page)) or len(seen) >= 5, "five pictures differ")
        until(lambda: "frame" in page.locator("#tiles .figures").inner_text(), "the number of the frame is told")

    def test_sixteen_previews_and_events_share_one_socket(self):
        page = self.ready(height=9000)
        for _ in range(15):
            page.get_by_role("button", name="Add preview").click()
        seen = [set() for _ in range(16)]

        def have_moved():
            for digests, row in zip(seen, self.rows(page)):
                digests.add(row)
            return min(len(digests) for digests in seen) >= 3
        until(have_moved, "three pictures of each differ", 60)
        self.choose(page, "watch")
        self.change(page, page.locator("#stage").get_by_role("button", name="Pause").click,
                    lambda: "from frame" in page.locator("#stage-body > .said").inner_text(), "controls are answered meanwhile")
        self.assertEqual(len(self.sockets), 1)
        self.assertEqual([request.url for request in self.asked if "/picture?" in request.url or request.url.endswith("/events")], [])
        figures = page.locator("#tiles .figures").first
        until(lambda: re.search(r"frame \d+ · .*/s · \d+ ms", figures.inner_text()), "its figures are shown")
        self.assertEqual(self.complained("409"), [])

    def test_an_h264_preview_shows_the_encoders_own_stream(self):
        """By WebCodecs; by Media Source Extensions where the page is no secure context."""
        for host, has_codecs in (("127.0.0.1", True), ("camera.test", False)):
            with self.subTest(host=host):
                self.shows_the_encoders_stream(host, has_codecs)

    def shows_the_encoders_stream(self, host, has_codecs):
        page = self.ready(host=host)
        self.assertEqual(page.evaluate("typeof VideoDecoder !== 'undefined'"), has_codecs)
        page.locator("#preview-stage").select_option("h264")
        page.get_by_role("button", name="Add preview").click()
        page.locator("#tiles canvas").nth(1).scroll_into_view_if_needed()
        until(lambda: self.canvas(page, 1) == (640, 360), "the picture has its own size")
        seen = set()
        until(lambda: seen.add(self.rows(page)[1]) or len(seen) >= 5, "five pictures differ")
        # Of the last second's pictures, so not there with the first.
        until(lambda: re.search(r"frame \d+ · .*/s", page.locator("#tiles .figures").nth(1).inner_text()), "its figures are shown")
        page.locator("#tiles summary").nth(1).click()
        page.get_by_label("Rotate").nth(1).select_option("right")
        until(lambda: self.canvas(page, 1) == (360, 640), "the picture is turned")
        page.get_by_role("button", name="Pause the preview of h264").click()
        page.wait_for_timeout(500)
        still = self.rows(page)[1]
        page.wait_for_timeout(500)
        self.assertEqual(self.rows(page)[1], still)
        page.get_by_role("button", name="Play the preview of h264").click()
        seen = set()
        until(lambda: seen.add(self.rows(page)[1]) or len(seen) >= 3, "it moves again")
        self.assertEqual(self.complained(), [])
        self.keep(page, f"h264-{host}", full_page=True)
        page.context.close()

    def test_a_preview_that_is_paused_stands_still(self):
        page = self.ready()
        first = self.digest(page)
        until(lambda: self.digest(page) != first, "it moves")
        page.get_by_role("button", name="Pause the preview of title").click()
        # A picture that was under way has come by then, or never will.
        page.wait_for_timeout(700)
        still = self.digest(page)
        page.wait_for_timeout(1000)
        self.assertEqual(self.digest(page), still)
        page.get_by_role("button", name="Play the preview of title").click()
        until(lambda: self.digest(page) != still, "it moves again")

    def test_previews_turn_and_take_shapes_and_are_there_again_after_a_reload(self):
        page = self.ready()
        until(lambda: self.canvas(page) == (640, 360), "the picture's own shape")
        page.locator("#tiles summary").click()
        page.get_by_label("Rotate").select_option("right")
        until(lambda: self.canvas(page) == (360, 640), "the picture is turned")
        page.get_by_label("Mirror").check()
        page.get_by_label("Size").select_option("small (320)")
        page.get_by_label("Shape", exact=True).select_option("1:1")
        page.get_by_label("Other shapes").select_option("fill and crop")
        wish = {"stage": "title", "width": 320, "height": 320, "fit": "fill"}

        def is_asked():
            page.wait_for_timeout(50)
            return any("open" in message and wish.items() <= message.items() for message in self.said)
        until(is_asked, "the wish reaches the server")
        page.locator("#preview-stage").select_option("right")
        page.get_by_role("button", name="Add preview").click()
        until(lambda: page.locator("#tiles .tile").count() == 2, "two previews")
        page.reload()
        until(lambda: page.locator("#tiles .tile").count() == 2, "two previews after the reload")
        page.locator("#tiles summary").first.click()
        self.assertEqual(page.get_by_label("Rotate").first.input_value(), "90")
        self.assertTrue(page.get_by_label("Mirror").first.is_checked())
        page.get_by_role("button", name="Close the preview of right").click()
        until(lambda: page.locator("#tiles .tile").count() == 1, "one preview is closed")

    def test_settings_that_an_older_page_stored_do_not_break_a_preview(self):
        page = self.ready()
        old = [{"stage": "title", "wishes": {"size": 320, "shape": "1:1", "fit": "fit", "turn": 1, "mirror": True, "paused": False}}]
        page.evaluate("""old => {
            for (const key of Object.keys(localStorage).filter(key => key.startsWith("framehost-previews:")))
                localStorage.setItem(key, JSON.stringify(old))
        }""", old)
        page.reload()
        page.locator("#tiles .tile").wait_for()
        wish = {"stage": "title", "width": 320, "height": 320, "fit": "contain"}

        def is_asked():
            page.wait_for_timeout(50)
            return any("open" in message and wish.items() <= message.items() for message in self.said)
        until(is_asked, "the preview asks with the words of this page")
        seen = set()
        until(lambda: seen.add(self.digest(page)) or len(seen) >= 3, "it moves")
        page.locator("#tiles summary").click()
        self.assertEqual(page.get_by_label("Rotate").input_value(), "0")
        self.assertTrue(page.get_by_label("Mirror").is_checked())

    def test_a_form_changes_an_option(self):
        page = self.ready()
        self.choose(page, "title")
        page.get_by_label("opacity", exact=True).fill("0.5")
        page.get_by_label("box", exact=True).check()
        page.get_by_label("position", exact=True).select_option("top")
        with page.expect_request("**/api/v1/stages/title/options") as asked:
            page.get_by_role("button", name="Apply").click()
        self.assertEqual(asked.value.method, "PATCH")
        self.assertEqual(asked.value.headers["content-type"], "application/json")
        self.assertEqual(json.loads(asked.value.post_data), {"opacity": 0.5, "box": True, "position": "top"})
        until(lambda: "from frame" in page.locator("#stage .options .said").inner_text(), "the frame is told")
        # The chain has it: another page shows it.
        other = self.ready()
        self.choose(other, "title")
        until(lambda: other.get_by_label("opacity", exact=True).input_value() == "0.5", "another page shows the new value")
        self.assertTrue(other.get_by_label("box", exact=True).is_checked())
        self.assertEqual(self.complained(), [])

    def test_a_fault_stands_at_its_field(self):
        page = self.ready()
        self.choose(page, "title")
        field = page.get_by_label("opacity", exact=True)
        field.fill("2")
        page.get_by_role("button", name="Apply").click()
        until(lambda: "from 0 to 1" in page.locator("#option-opacity-fault").inner_text(), "the rule is told")
        self.assertEqual(field.get_attribute("aria-invalid"), "true")
        self.assertEqual(page.evaluate("document.activeElement.id"), "option-opacity")
        page.get_by_role("button", name="Undo").click()
        self.assertEqual(field.input_value(), "1")
        self.assertIsNone(field.get_attribute("aria-invalid"))
        field.fill("")
        page.get_by_role("button", name="Apply").click()
        self.assertEqual(page.locator("#option-opacity-fault").inner_text(), "Write a number.")

    def test_options_that_cannot_change_now_are_shown_and_no_fields(self):
        page = self.ready()
        self.choose(page, "h264")
        page.get_by_text("Fixed while it runs").click()
        preset = page.locator("dl.fixed div", has=page.get_by_text("preset", exact=True))
        self.assertEqual(preset.locator("dd").inner_text(), "ultrafast")
        self.assertEqual(page.locator("#stage .options form input").count(), 1)
        self.assertEqual(page.get_by_label("bitrateKbps").input_value(), "1500")

    def test_the_switch_shows_another_input(self):
        page = self.ready()
        self.choose(page, "switch")
        group = page.get_by_role("group", name="Input that is shown")
        until(lambda: group.get_by_role("button", name="left").get_attribute("aria-pressed") == "true", "left is shown")
        with page.expect_request("**/stages/switch/commands/switch") as asked:
            group.get_by_role("button", name="right").click()
        self.assertEqual(json.loads(asked.value.post_data), {"to": "right"})
        until(lambda: group.get_by_role("button", name="right").get_attribute("aria-pressed") == "true", "right is shown")
        self.assertEqual(self.complained(), [])

    def test_a_stage_is_paused_and_goes_on(self):
        page = self.ready()
        self.choose(page, "watch")
        row = page.locator("#list tr", has=page.get_by_role("button", name="watch", exact=True))
        self.change(page, page.locator("#stage").get_by_role("button", name="Pause").click,
                    lambda: "paused" in row.inner_text(), "the list says that it is paused")
        until(lambda: page.locator("#graph .node[data-level=rest]").count() == 1, "the graph shows it")
        self.change(page, page.locator("#stage").get_by_role("button", name="Resume").click,
                    lambda: "paused" not in row.inner_text(), "it goes on")

    def test_a_recording_starts_and_stops(self):
        page = self.ready()
        self.choose(page, "file")
        page.get_by_role("button", name="Start recording").click()
        until(lambda: "recording-did-start" in page.locator("#event-list").inner_text(), "the event comes")
        until(lambda: page.locator("#announce").inner_text() != "", "it is read out")
        page.get_by_role("button", name="Stop recording").click()
        until(lambda: "recording-did-stop" in page.locator("#event-list").inner_text(), "the event comes")
        texts = page.locator("#event-list code").all_inner_texts()
        self.assertLess(texts.index("recording-did-stop"), texts.index("recording-did-start"), "the newest stands first")
        self.assertEqual(self.complained(), [])

    def test_a_branch_is_added_and_taken_away(self):
        page = self.ready()
        self.choose(page, "title")
        page.get_by_role("button", name="Add a branch…").click()
        text = page.get_by_label("Stages, as in the chain file")
        text.fill('[ { "id": "more", "use": "null-sink" ')
        page.get_by_role("button", name="Add", exact=True).click()
        self.assertIn("must be JSON", page.locator("#branch-fault").inner_text())
        text.fill('[ { "id": "more", "use": "null-sinc" } ]')
        page.get_by_role("button", name="Add", exact=True).click()
        until(lambda: "null-sinc" in page.locator("#branch-fault").inner_text(), "the server's fault is told")
        text.fill('[ { "id": "more", "use": "null-sink" } ]')
        page.get_by_label("Give the branch copies").check()
        more = page.locator("#list").get_by_role("button", name="more", exact=True)
        with page.expect_request("**/api/v1/branches") as asked:
            self.change(page, page.get_by_role("button", name="Add", exact=True).click, lambda: more.count() == 1,
                        "it stands in the list", "#branch-fault")
        self.assertEqual(json.loads(asked.value.post_data),
                         {"at": "title", "stages": [{"id": "more", "use": "null-sink"}], "copy": True})
        self.choose(page, "more")
        page.get_by_role("button", name="Remove…").click()
        page.keyboard.press("Escape")
        self.assertFalse(page.locator("#question").is_visible())

        def remove():
            page.get_by_role("button", name="Remove…").click()
            page.locator("#question").get_by_role("button", name="Remove").click()
        self.change(page, remove, lambda: more.count() == 0, "it has gone from the list")
        until(lambda: "Choose a stage" in page.locator("#stage-body").inner_text(), "its panel is closed")

    def test_a_snapshot_is_a_picture_in_the_downloads(self):
        page = self.ready()
        self.choose(page, "title")
        download = self.snapshot(page, "Snapshot (JPEG)")
        self.assertRegex(download.suggested_filename, r"^title-\d+\.jpg$")
        with open(download.path(), "rb") as file:
            self.assertEqual(file.read(3), b"\xff\xd8\xff")
        self.assertEqual(self.complained(), [])

    def test_the_keyboard_alone_reaches_and_does_everything(self):
        page = self.ready()
        page.keyboard.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.className"), "skip")
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "title":
                break
        page.keyboard.press("Enter")
        until(lambda: page.evaluate("document.activeElement.id") == "stage-title", "the focus is at the stage")
        # From the top once around: everything that can be used, and nothing twice.
        page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        usable = page.evaluate("""() => [...document.querySelectorAll(
            "a[href], button:enabled, select, input, textarea, summary, [tabindex='0']")].filter(e => e.checkVisibility()).length""")
        reached = set()
        for number in range(usable + 12):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("""n => { const e = document.activeElement
                if (e === document.body) return null
                e.dataset.reached ??= String(n)
                return e.dataset.reached }""", number))
        reached.discard(None)
        missed = page.evaluate("""() => [...document.querySelectorAll(
            "a[href], button:enabled, select, input, textarea, summary, [tabindex='0']")]
            .filter(e => e.checkVisibility() && !e.dataset.reached).map(e => e.outerHTML.slice(0, 100))""")
        self.assertEqual(missed, [])
        # Closing the panel gives the focus back to the list.
        page.locator("#stage").get_by_role("button", name="Close").focus()
        page.keyboard.press("Enter")
        self.assertEqual(page.evaluate("document.activeElement.textContent"), "title")

    def test_axe_finds_no_violation_in_light_and_dark(self):
        for scheme in ("light", "dark"):
            page = self.ready(scheme=scheme)
            until(lambda: page.locator("#tiles .over").is_hidden(), "a picture is there")
            self.assert_no_violation(page, f"{scheme}, as it opens")
            for stage in ("title", "switch", "file"):
                self.choose(page, stage)
                page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true })")
                self.assert_no_violation(page, f"{scheme}, stage {stage}")
            self.choose(page, "title")
            page.get_by_role("button", name="Add a branch…").click()
            page.get_by_label("Stages, as in the chain file").fill("[")
            page.get_by_role("button", name="Add", exact=True).click()
            self.assert_no_violation(page, f"{scheme}, a branch")
            page.keyboard.press("Escape")
            page.get_by_role("button", name="End the run…").click()
            self.assert_no_violation(page, f"{scheme}, a question")
            page.keyboard.press("Escape")

    def test_works_on_a_narrow_screen(self):
        page = self.ready(width=360, height=740)
        for stage in ("title", "switch", "file"):
            self.choose(page, stage)
            self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), 360, stage)
            small = page.evaluate("""() => [...document.querySelectorAll("button, select, input, summary")]
                .filter(e => e.checkVisibility()).map(e => [e, (e.closest("label.check") ?? e).getBoundingClientRect()])
                .filter(([, box]) => box.width < 24 || box.height < 24).map(([e]) => e.outerHTML.slice(0, 80))""")
            self.assertEqual(small, [], "targets of at least 24 pixels")
            cut = page.evaluate("""() => [...document.querySelectorAll("main button, main select, main input, header button")]
                .filter(e => e.checkVisibility() && !e.closest(".scroll")).map(e => [e, e.getBoundingClientRect()])
                .filter(([, box]) => box.left < 0 || box.right > 360).map(([e]) => e.outerHTML.slice(0, 80))""")
            self.assertEqual(cut, [], "nothing stands beside the screen")
        page.locator("#tiles canvas").scroll_into_view_if_needed()
        seen = set()
        until(lambda: seen.add(self.digest(page)) or len(seen) >= 3, "previews move there too")
        self.keep(page, "narrow", full_page=True)

    def test_says_that_the_run_has_ended(self):
        page = self.ready()
        page.get_by_role("button", name="End the run…").click()
        with page.expect_request("**/api/v1/drain"):
            page.locator("#question").get_by_role("button", name="End the run").click()
        self.server.stop()
        until(lambda: "No figures since" in page.locator("#connection").inner_text(), "the page says so")

    def test_says_that_the_run_could_not_be_ended(self):
        page = self.ready()
        page.route("**/api/v1/drain", lambda route: route.abort())
        page.get_by_role("button", name="End the run…").click()
        page.locator("#question").get_by_role("button", name="End the run").click()
        until(lambda: '"End the run" failed: ' in page.locator("#connection").inner_text(), "it is shown")
        until(lambda: '"End the run" failed: ' in page.locator("#announce").text_content(), "and read out")

    def screenshots_for_the_documentation(self):
        for scheme in ("light", "dark"):
            page = self.ready(scheme=scheme, height=1000)
            page.locator("#preview-stage").select_option("left")
            page.get_by_role("button", name="Add preview").click()
            self.choose(page, "title")
            page.wait_for_timeout(4000)
            self.keep(page, f"page-{scheme}")

    if PICTURES:
        test_screenshots_for_the_documentation = screenshots_for_the_documentation


# A decoder of H.265 for a browser that has none: it shows a grey picture for each unit, and notes what it was given.
DECODER = """() => {
    window.given = []
    class Decoder {
        constructor({ output }) { Object.assign(this, { output, state: "unconfigured" }) }
        static async isConfigSupported(config) {
            window.given.push({ asked: config })
            await new Promise((resolve) => setTimeout(resolve, 200))
            return { supported: config.codec.startsWith("hvc1.") }
        }
        configure(config) {
            window.given.push({ configured: config })
            this.state = "configured"
        }
        decode(chunk) {
            const bytes = new Uint8Array(chunk.byteLength)
            chunk.copyTo(bytes)
            window.given.push({ type: chunk.type, bytes: [...bytes] })
            const canvas = new OffscreenCanvas(640, 360)
            canvas.getContext("2d").fillRect(0, 0, 1, 1)
            this.output(new VideoFrame(canvas, { timestamp: chunk.timestamp }))
        }
        close() { this.state = "closed" }
    }
    window.VideoDecoder = Decoder
}"""


class MockTests(PageTests):
    """What a stand-in can be told to do."""

    def preview_h265(self, pixels="yuv420p", **how):
        """A page with a preview of H.265."""
        self.server.units["h265"] = mock.make_h265_units(pixels=pixels)
        next(stage for stage in self.server.plan["stages"] if stage["id"] == "h264")["output"] = "H.265 640x360 30 fps"
        page = self.ready(**how)
        self.assertEqual(page.locator("#preview-stage option[value=h264]").inner_text(), "h264 (H.265)")
        self.choose(page, "h264")
        page.get_by_role("button", name="Preview (H.265)").click()
        page.locator("#tiles .tile").nth(1).scroll_into_view_if_needed()
        return page, page.locator("#tiles .over").nth(1)

    def kinds_asked(self):
        return [message["kind"] for message in self.server.messages if "kind" in message]

    def test_a_browser_without_h265_says_so(self):
        page, words = self.preview_h265()
        until(lambda: words.inner_text() == "This browser cannot show H.265 (hvc1.1.6.L63.90). Use another browser, or preview a "
              "source that decodes the stream.", f"it says so: {words.inner_text()}")
        self.assertEqual(self.kinds_asked(), ["h265"])
        self.assertTrue(page.locator("#tiles canvas").nth(1).is_hidden(), "no black picture")
        self.assertEqual(page.locator("#tiles .tile").nth(1).get_by_role("button").all_inner_texts(), ["Close"])
        # It asks for nothing more: not when the page is seen again, nor over another socket.
        for hide in ("Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })", "delete document.hidden"):
            page.evaluate(f"{hide}; document.dispatchEvent(new Event('visibilitychange'))")
        self.server.drop()
        until(lambda: self.server.sockets == 1, "the socket is there again")
        page.wait_for_timeout(1500)
        self.assertEqual(self.kinds_asked(), ["h265"])
        self.assertTrue(words.inner_text().startswith("This browser cannot show H.265"))
        opened = next(message["open"] for message in self.server.messages if "kind" in message)
        self.assertIn({"close": opened}, self.server.messages)
        self.assertEqual(self.complained(), [])
        self.assert_no_violation(page, "no H.265")
        self.keep(page, "h265", full_page=True)

    def test_a_page_without_tls_says_that_h265_needs_it(self):
        page, words = self.preview_h265(host="camera.test")
        until(lambda: words.inner_text() == "This browser may show H.265 only on a page with TLS or of localhost. Open the page so, "
              "or preview a source that decodes the stream.", "it says so")
        self.assertEqual(self.kinds_asked(), [])

    def test_a_browser_with_h265_shows_it(self):
        """Units as they came, with start codes and so without a description; the first ones too, which came while the browser was asked."""
        page, words = self.preview_h265(pixels="yuv420p10le", script=DECODER)
        until(lambda: self.canvas(page, 1) == (640, 360), "the picture has its own size")
        until(words.is_hidden, "nothing stands over it")
        given = until(lambda: (lambda all: all if len(all) > 40 else None)(page.evaluate("window.given")), "units are decoded")
        config = {"codec": "hvc1.2.4.L63.90", "optimizeForLatency": True}
        self.assertEqual(given[:2], [{"asked": config}, {"configured": config}])
        chunks = given[2:]
        self.assertEqual([chunk["type"] for chunk in chunks[:31]], ["key"] + ["delta"] * 29 + ["key"])
        self.assertEqual([bytes(chunk["bytes"]) for chunk in chunks[:31]], self.server.units["h265"][:31])
        self.assertEqual(self.complained(), [])

    def test_leading_pictures_of_where_decoding_begins_are_left_out(self):
        """A CRA with RASL pictures, as many cameras begin their groups: at the beginning they cannot be decoded, later they can."""
        def unit(kind):
            return b"\0\0\0\1" + bytes([kind << 1, 1, 0x80, kind])
        whole = mock.make_h265_units(1)[0]
        sets = whole[:whole.index(b"\0\0\1\x28\x01")].removesuffix(b"\0")
        group = [sets + unit(21), unit(9), unit(8), *[unit(1)] * 27]
        self.server.units["h265"] = group
        mock.make_h265_units, kept = lambda **_: group, mock.make_h265_units
        self.addCleanup(setattr, mock, "make_h265_units", kept)
        page, _ = self.preview_h265(script=DECODER)
        given = until(lambda: (lambda all: all if len(all) > 70 else None)(page.evaluate("window.given")), "units are decoded")
        kinds = [chunk["bytes"][-1] for chunk in given if "bytes" in chunk]
        self.assertEqual(kinds[:58], [21, *[1] * 27] + [21, 9, 8, *[1] * 27])

    def test_the_codec_string_of_h265(self):
        """By ISO/IEC 14496-15, E.3, with its examples; and by what ffprobe says of streams."""
        page = self.ready()

        def codec(*units):
            return page.evaluate("async (units) => (await import('./h265.js')).parameters(units.map((unit) => new Uint8Array(unit)))?.codec",
                                 [list(unit) for unit in units])

        def sps(first, compatibility, constraints, level):
            return bytes([0x42, 1, 1, first]) + compatibility.to_bytes(4, "big") + constraints.to_bytes(6, "big") + bytes([level, 0xa0])
        # Emulation prevention: 3 after two zeros.
        self.assertEqual(codec(b"\x40\x01\x0c", sps(1, 0x60000000, 0xB00000000000, 93).replace(b"\0\0\0", b"\0\0\3\0")),
                         "hvc1.1.6.L93.B0")
        self.assertEqual(codec(sps(0x64, 0x82000000, 0xB02300000000, 120)), "hvc1.A4.41.H120.B0.23")
        self.assertEqual(codec(sps(2, 0x20000000, 0, 153)), "hvc1.2.4.L153")
        self.assertEqual(codec(sps(4, 0x08000000, 0x9D0800000000, 123)), "hvc1.4.10.L123.9D.8")
        self.assertEqual(codec(sps(0xc1, 0x00000001, 1, 30)), "hvc1.C1.80000000.L30.0.0.0.0.0.1")
        for broken in ([], [b"\x40\x01\x0c"], [b"\x42\x01\x01\x01"], [b"\x42\x01"], [b"\x42"]):
            self.assertIsNone(codec(*broken))
        for pixels, profile, name in (("yuv420p", 1, "Main"), ("yuv420p10le", 2, "Main 10")):
            first = mock.make_h265_units(1, pixels)[0]
            probed = json.loads(subprocess.run(
                ["ffprobe", "-v", "error", "-f", "hevc", "-show_entries", "stream=profile,level", "-of", "json", "-"], input=first,
                stdout=subprocess.PIPE, check=True).stdout)["streams"][0]
            self.assertEqual(probed["profile"], name)
            found = page.evaluate("""async (bytes) => {
                const [{ nalUnits }, { parameters }] = [await import("./h264.js"), await import("./h265.js")]
                return parameters(nalUnits(new Uint8Array(bytes))).codec }""", list(first))
            _, ours, _, level = found.split(".")[:4]
            self.assertEqual((ours, level), (str(profile), f"L{probed['level']}"))

    def test_colour_and_a_word_stand_where_it_hurts(self):
        page = self.ready()
        self.server.lost, self.server.full, self.server.held = {"h264"}, {"h264>file"}, {"watch"}
        self.server.failed, self.server.paused = {"switch"}, {"right"}

        def row(stage):
            return page.locator("#list tr", has=page.get_by_role("button", name=stage, exact=True)).inner_text()
        until(lambda: "lost" in row("h264"), "drops")
        until(lambda: "queue full" in row("file"), "a full queue")
        until(lambda: "held at limit" in row("watch"), "buffers")
        until(lambda: "failed" in row("switch"), "a failed stage")
        until(lambda: "paused" in row("right"), "a paused one")
        notes = page.locator("#graph .note").all_text_contents()
        for word in ("lost", "queue full", "held at limit", "failed", "paused"):
            self.assertTrue(any(word in note for note in notes), f"{word} in {notes}")
        # What a link that keeps the newest leaves out is no loss.
        self.assertNotIn("lost", row("watch"))
        self.choose(page, "h264")
        until(lambda: "queue full or no free buffer" in page.locator("#stage .hurts").inner_text(), "the reason is told")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            self.assert_no_violation(page, f"{scheme}, in trouble")
            self.keep(page, f"trouble-{scheme}", full_page=True)

    def test_problems_are_sentences_and_read_out_once(self):
        page = self.ready()
        self.server.problems = ["left (test-source) has given nothing for 6 s."]
        until(lambda: "nothing for 6 s" in page.locator("#problems").inner_text(), "the problem is shown")
        until(lambda: "nothing for 6 s" in page.locator("#announce").inner_text(), "and read out")
        self.server.problems = ["left (test-source) has given nothing for 7 s."]
        until(lambda: "for 7 s" in page.locator("#problems").inner_text(), "the figure goes on")
        page.wait_for_timeout(1500)
        self.assertIn("for 6 s", page.locator("#announce").inner_text())
        self.assert_no_violation(page, "a problem")
        self.server.problems = []
        until(lambda: page.locator("#problems").is_hidden(), "it goes")

    def test_events_are_filtered_bounded_and_newest_first(self):
        page = self.ready()
        until(lambda: self.server.listeners, "the page listens")
        for number in range(250):
            self.server.post("fps", f"number {number}", "title", "debug" if number % 2 else "warning")
        until(lambda: "number 248" in page.locator("#event-list").inner_text(), "the last warning is there")
        self.assertNotIn("number 249", page.locator("#event-list").inner_text())
        page.get_by_label("Show").select_option("everything")
        until(lambda: page.locator("#event-list li").first.inner_text().endswith("number 249"), "the last event stands first")
        until(lambda: page.locator("#event-list li").count() == 200, "two hundred are kept")
        page.get_by_label("Show").select_option("errors")
        self.assertEqual(page.locator("#event-list li").count(), 0)

    def test_at_most_four_pictures_are_under_way_and_controls_pass_them(self):
        self.server.has_live = False
        page = self.ready(height=3000)
        for _ in range(11):
            page.get_by_role("button", name="Add preview").click()
        self.server.has_pictures = False
        until(lambda: self.server.pictures_most >= 3, "pictures are asked for one by one")
        page.wait_for_timeout(1500)
        self.assertEqual(page.locator("#tiles .tile").count(), 12)
        self.choose(page, "watch")
        page.locator("#stage").get_by_role("button", name="Pause").click()
        until(lambda: "from frame" in page.locator("#stage-body > .said").inner_text(), "the control is answered")
        self.assertLessEqual(self.server.pictures_most, 4)
        self.assertGreaterEqual(self.server.pictures_most, 3)
        self.assertIn("No picture yet.", page.locator("#tiles .over").first.inner_text())

    def pictures_asked(self):
        return self.server.pictures_sent + sum("/picture" in path for _, path, _, _ in self.server.requests)

    def test_a_preview_that_nobody_sees_asks_for_nothing(self):
        for has_live in (True, False):
            with self.subTest(has_live=has_live):
                self.server.has_live = has_live
                self.nobody_sees()

    def nobody_sees(self):
        page = self.ready(height=500)
        page.locator("#tiles canvas").scroll_into_view_if_needed()
        begin = self.pictures_asked()
        until(lambda: self.pictures_asked() > begin + 5, "pictures come")
        for hide, show in (("window.scrollTo(0, 0)", "document.querySelector('#tiles').scrollIntoView()"),
                           ("Object.defineProperty(document, 'hidden', { configurable: true, get: () => true }); "
                            "document.dispatchEvent(new Event('visibilitychange'))",
                            "delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")):
            page.evaluate(hide)

            def asked_in_a_second():
                before = self.pictures_asked()
                page.wait_for_timeout(1000)
                return self.pictures_asked() - before
            until(lambda: asked_in_a_second() == 0, "what was under way is over", 60)
            self.assertEqual(asked_in_a_second(), 0, hide)
            before = self.pictures_asked()
            page.evaluate(show)
            until(lambda: self.pictures_asked() > before, "pictures come again")
        page.context.close()

    def test_pictures_and_events_come_by_requests_where_there_is_no_socket(self):
        self.server.has_live = False
        page = self.ready()
        seen = set()
        until(lambda: seen.add(self.digest(page)) or len(seen) >= 3, "previews move")
        until(lambda: self.server.listeners, "the page listens")
        self.server.post("odd", "something happened", "title", "warning")
        until(lambda: "something happened" in page.locator("#event-list").inner_text(), "events come")

    def test_the_socket_comes_back_with_all_previews(self):
        page = self.ready(height=3000)
        page.get_by_role("button", name="Add preview").click()
        until(lambda: self.server.pictures_sent > 4, "pictures come")
        page.evaluate("""() => { for (const tile of document.querySelectorAll("#tiles canvas"))
            tile.getContext("2d").clearRect(0, 0, 640, 360) }""")
        self.server.drop()
        until(lambda: self.server.sockets == 1, "it is open again")
        seen = [set(), set()]

        def have_moved():
            for digests, row in zip(seen, self.rows(page)):
                digests.add(row)
            return min(len(digests) for digests in seen) >= 3
        until(have_moved, "both previews move")
        self.server.post("odd", "after the gap", "title", "warning")
        until(lambda: "after the gap" in page.locator("#event-list").inner_text(), "events come again")

    def test_a_preview_that_the_server_ends_says_why_and_comes_back(self):
        page = self.ready()
        until(lambda: self.server.pictures_sent > 1, "pictures come")
        self.server.end_previews({"place": "title", "what": "no such stage", "remedy": "Name another one."})
        until(lambda: page.locator("#tiles .over").inner_text() == "title: no such stage. Name another one.", "it says why")
        until(lambda: page.locator("#tiles .over").is_hidden(), "it is there again")

    def test_a_server_that_is_away_is_told_and_found_again(self):
        page = self.ready()
        port = self.server.port
        self.server.stop()
        until(lambda: "No figures since" in page.locator("#connection").inner_text(), "it is told")
        self.assert_no_violation(page, "away")
        self.server = MockServer(port=port)
        self.addCleanup(self.server.stop)
        until(lambda: page.locator("#connection").is_hidden(), "it is found again")
        until(lambda: self.server.listeners, "events are read again")

    def test_says_why_its_modules_are_refused(self):
        self.server.refuses_origins = True
        page = self.open()
        until(lambda: page.locator("#connection").inner_text()
              == "The page could not be loaded completely. The page comes from elsewhere. Pass on Host.", "it says why")
        self.assertEqual(page.locator("#state .word").inner_text(), "Not loaded")
        self.assert_no_violation(page, "refused")

    def test_who_wants_less_motion_gets_one_picture_a_second(self):
        page = self.ready(motion="reduce")
        page.locator("#tiles summary").click()
        self.assertEqual(page.get_by_label("Rate").input_value(), "1")

    def test_texts_of_the_server_are_no_markup(self):
        page = self.ready()
        until(lambda: self.server.listeners, "the page listens")
        self.server.post("odd", "<img src=x onerror=alert(1)><b>bold</b>", "<i>stage</i>", "warning")
        until(lambda: "<b>bold</b>" in page.locator("#event-list").inner_text(), "the text is shown as it is")
        self.assertEqual(page.locator("#event-list img, #event-list b, #event-list i").count(), 0)
        self.assertEqual(self.complained(), [])


class TokenTests(Case):
    token = "a-token-of-tests-0123456789abcdef"

    def test_asks_for_the_token_and_keeps_it_in_the_tab(self):
        page = self.open()
        page.get_by_label("Token").wait_for()
        self.assert_no_violation(page, "the login")
        page.get_by_label("Token").fill("another-token-of-tests-012345678")
        page.keyboard.press("Enter")
        until(lambda: "did not accept" in page.locator("#login-fault").inner_text(), "a wrong one is told")
        page.get_by_label("Token").fill(self.token)
        page.keyboard.press("Enter")
        page.locator("#list tbody tr").nth(len(STAGES) - 1).wait_for()
        page.reload()
        page.locator("#list tbody tr").nth(len(STAGES) - 1).wait_for()
        self.assertFalse(page.locator("#login").is_visible())
        self.assertNotIn(self.token, page.content())
        page.get_by_role("button", name="Sign out").click()
        until(lambda: page.locator("#login").is_visible(), "the token is forgotten")
        self.assertEqual(self.complained("401"), [])

    def test_takes_the_token_of_the_address_and_hides_it(self):
        page = self.open(path=f"#token={self.token}")
        page.locator("#list tbody tr").nth(len(STAGES) - 1).wait_for()
        self.assertNotIn("token", page.url)
        seen = set()
        until(lambda: seen.add(self.digest(page)) or len(seen) >= 3, "previews move with a token too")
        self.assertEqual(self.complained(), [])


class LoginTests(Case):
    """People with a name and a password, and what each may do."""

    def setUp(self):
        super().setUp()
        self.server.users = {"anna": ("right", ["watch", "control", "originals"]), "cora": ("right", ["watch"])}
        self.server.originals = {"left", "h264"}

    def log_in(self, name, **wishes):
        page = self.open(**wishes)
        page.get_by_label("Name").wait_for()
        # By the keyboard alone: the focus is where a name is written.
        page.keyboard.type(name)
        page.keyboard.press("Tab")
        page.keyboard.type("right")
        page.keyboard.press("Enter")
        page.locator("#list tbody tr").nth(len(STAGES) - 1).wait_for()
        return page

    def test_asks_for_a_name_and_a_password_and_keeps_neither(self):
        page = self.open()
        page.get_by_label("Name").wait_for()
        self.assert_no_violation(page, "the login")
        self.assertFalse(page.get_by_label("Token").is_visible())
        page.get_by_label("Name").fill("cora")
        page.get_by_label("Password").fill("wrong")
        page.keyboard.press("Enter")
        until(lambda: "name or the password is wrong" in page.locator("#login-fault").inner_text(), "a wrong one is told")
        self.assertEqual(page.get_by_label("Password").input_value(), "")
        page.get_by_label("Password").fill("right")
        page.get_by_role("button", name="Sign in").click()
        page.locator("#list tbody tr").nth(len(STAGES) - 1).wait_for()
        self.assertEqual(page.locator("#who").inner_text(), "cora")
        stored = page.evaluate("() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])")
        self.assertNotIn("right", stored)
        page.reload()
        page.locator("#list tbody tr").nth(len(STAGES) - 1).wait_for()
        self.assertFalse(page.locator("#login").is_visible())
        page.get_by_role("button", name="Sign out").click()
        until(lambda: page.locator("#login").is_visible(), "the session is over here")
        self.assertEqual(self.server.sessions, {}, "and at the server")
        self.assertEqual(self.complained("401"), [])

    def test_the_token_is_another_way(self):
        self.server.token = "a-token-of-tests-0123456789abcdef"
        page = self.open()
        page.get_by_role("button", name="Use the token").click()
        page.get_by_label("Token").fill(self.server.token)
        page.keyboard.press("Enter")
        page.locator("#list tbody tr").nth(len(STAGES) - 1).wait_for()
        self.assertEqual(self.complained("401"), [])

    def test_a_session_that_has_ended_is_told(self):
        page = self.log_in("anna")
        self.server.sessions.clear()
        until(lambda: "session has ended" in page.locator("#login-fault").inner_text(), "the page says why it asks")
        page.get_by_label("Name").fill("cora")
        page.get_by_label("Password").fill("right")
        page.keyboard.press("Enter")
        until(lambda: page.locator("#who").inner_text() == "cora", "another user is there")
        until(lambda: page.locator("#rights").is_visible(), "who may do less")

    def test_who_only_watches_is_told_and_presses_nothing(self):
        page = self.log_in("cora")
        self.assertIn("“control”", page.locator("#rights").inner_text())
        self.assertTrue(page.get_by_role("button", name="End the run…").is_disabled())
        self.choose(page, "title")
        for name in ("Pause", "Add a branch…", "Remove…", "Apply"):
            self.assertTrue(page.locator("#stage-body").get_by_role("button", name=name, exact=True).is_disabled(), name)
        self.assertTrue(page.locator("#option-text").is_disabled())
        self.assertIn("the user cora does not have", page.locator("#no-control").inner_text())
        self.assertTrue(page.locator("#stage-body").get_by_role("button", name="Snapshot (PNG)").is_enabled())
        self.assert_no_violation(page, "a page of somebody who watches")
        self.assertEqual(self.complained("401"), [])

    def test_previews_of_a_bare_stage_are_words(self):
        page = self.log_in("cora")
        page.locator("#preview-stage").select_option("left")
        page.get_by_role("button", name="Add preview").click()
        tile = page.locator("#tiles .tile", has=page.locator("strong", has_text="left"))
        # Pictures come only where somebody looks.
        tile.scroll_into_view_if_needed()
        until(lambda: "“originals”" in tile.locator(".over").inner_text(), "the tile says why")
        self.assertFalse(tile.locator("canvas").is_visible())
        self.assertTrue(tile.get_by_role("button", name="Snapshot").is_disabled())
        self.choose(page, "left")
        self.assertIn("“originals”", page.locator("#no-originals").inner_text())
        self.assertTrue(page.locator("#stage-body").get_by_role("button", name="Preview", exact=True).is_disabled())
        self.assert_no_violation(page, "previews that are words")
        # It was not even asked for.
        self.assertFalse([message for message in self.said if message.get("open") is not None and message.get("stage") == "left"])
        # A change covers it again.
        tile.scroll_into_view_if_needed()
        self.server.originals.clear()
        self.server.post("structure-changed", "The chain has other stages.")
        until(lambda: tile.locator("canvas").is_visible() and tile.locator(".over").is_hidden(), "it shows pictures")
        # And bares it: the server ends the preview first.
        self.server.originals.add("left")
        self.server.end_previews({"what": "looking at it needs the right 'originals'", "place": "left", "code": "forbidden"})
        until(lambda: "'originals'" in tile.locator(".over").inner_text(), "it says what the server says")
        self.assertEqual(self.complained("401"), [])

    def test_who_has_all_rights_sees_and_does_all(self):
        page = self.log_in("anna")
        page.locator("#preview-stage").select_option("left")
        page.get_by_role("button", name="Add preview").click()
        tile = page.locator("#tiles .tile", has=page.locator("strong", has_text="left"))
        # Pictures come only where somebody looks.
        tile.scroll_into_view_if_needed()
        until(lambda: tile.locator(".over").is_hidden(), "it shows pictures")
        self.assertFalse(page.locator("#rights").is_visible())
        self.choose(page, "left")
        page.locator("#stage-body").get_by_role("button", name="Pause", exact=True).click()
        until(lambda: "left" in self.server.paused, "a stage is paused")


@unittest.skipUnless(os.access(PROGRAM, os.X_OK), f"the program is not built: '{PROGRAM}'")
class ProgramTests(PageTests):
    """The same with the program, and what only it can show."""
    make_server = Program

    def pixels(self, command, data=None):
        return subprocess.run(["ffmpeg", "-v", "error", *command, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], input=data,
                              stdout=subprocess.PIPE, check=True).stdout

    def row(self, stage):
        """The row 200 of a stage's picture; again where it gives none within a second."""
        picture = until(lambda: self.server.get(f"api/v1/stages/{stage}/picture?format=png"), f"a picture of {stage}")
        return self.pixels(["-i", "-"], picture)[200 * 640 * 3:201 * 640 * 3]

    @staticmethod
    def row_shown(page):
        """The same of the second preview."""
        return page.evaluate("""() => { const c = document.querySelectorAll("#tiles canvas")[1]
            return [...c.getContext("2d").getImageData(0, 200, 640, 1).data].filter((_, i) => i % 4 < 3) }""")

    def test_a_preview_shows_the_stages_picture(self):
        page = self.ready()
        page.locator("#preview-stage").select_option("right")
        page.get_by_role("button", name="Add preview").click()
        # What is out of sight asks for nothing.
        page.locator("#tiles canvas").nth(1).scroll_into_view_if_needed()
        until(lambda: self.canvas(page, 1) == (640, 360), "the second preview has a picture")
        page.wait_for_timeout(500)
        shown, row = self.row_shown(page), self.row("right")
        self.assertEqual(len(shown), len(row))
        # The bars: the frame's number, which differs, stands elsewhere.
        difference = sum(abs(a - b) for a, b in zip(shown, row)) / len(row)
        self.assertLess(difference, 6)
        self.assertGreater(max(row) - min(row), 100, "the bars differ from each other")

    def test_an_h264_preview_shows_the_stages_picture(self):
        for host in ("127.0.0.1", "camera.test"):
            with self.subTest(host=host):
                page = self.ready(host=host)
                self.choose(page, "switch")
                right = page.get_by_role("group", name="Input that is shown").get_by_role("button", name="right")
                right.click()
                until(lambda: right.get_attribute("aria-pressed") == "true", "right is shown")
                page.locator("#preview-stage").select_option("h264")
                page.get_by_role("button", name="Add preview").click()
                page.locator("#tiles canvas").nth(1).scroll_into_view_if_needed()
                until(lambda: self.canvas(page, 1) == (640, 360), "the preview has a picture")
                row = self.row("title")
                until(lambda: sum(abs(a - b) for a, b in zip(self.row_shown(page), row)) / len(row) < 8, "the preview shows the bars")
                self.assertGreater(max(row) - min(row), 100, "the bars differ from each other")
                page.context.close()

    def test_an_option_changes_the_picture(self):
        page = self.ready()
        self.choose(page, "title")
        page.get_by_label("text", exact=True).fill("############")
        page.get_by_label("size", exact=True).fill("30%")
        page.get_by_label("color", exact=True).fill("#00ff00")
        page.get_by_role("button", name="Apply").click()
        until(lambda: "from frame" in page.locator("#stage .options .said").inner_text(), "the option is set")
        page.locator("#tiles canvas").scroll_into_view_if_needed()
        green = """() => { const c = document.querySelector("#tiles canvas")
            const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data
            let n = 0
            for (let i = 0; i < d.length; i += 4) if (d[i + 1] > 200 && d[i] < 80 && d[i + 2] < 80) n += 1
            return n }"""
        until(lambda: page.evaluate(green) > 2000, "green letters stand in the preview")

    def test_a_recording_from_the_page_plays(self):
        page = self.ready()
        self.choose(page, "file")
        page.get_by_role("button", name="Start recording").click()
        until(lambda: "recording-did-start" in page.locator("#event-list").inner_text(), "it has begun")

        def delivered():
            stages = json.loads(self.server.get("api/v1/metrics"))["stages"]
            return next(stage["delivered"] for stage in stages if stage["id"] == "file")
        before = delivered()
        until(lambda: delivered() >= before + 45, "it takes pictures")
        page.get_by_role("button", name="Stop recording").click()
        until(lambda: "recording-did-stop" in page.locator("#event-list").inner_text(), "it has ended")
        ended = json.loads(until(lambda: next((line for line in self.server.events if '"recording-did-stop"' in line), None),
                                 "the event is told"))
        files = [name for name in os.listdir(self.server.folder.name) if name.endswith(".mp4")]
        self.assertEqual(len(files), 1)
        probed = json.loads(subprocess.run(
            ["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=codec_name,nb_read_frames,width", "-of", "json",
             os.path.join(self.server.folder.name, files[0])], stdout=subprocess.PIPE, check=True).stdout)["streams"][0]
        self.assertEqual((probed["codec_name"], probed["width"]), ("h264", 640))
        self.assertEqual(int(probed["nb_read_frames"]), ended["frames"])
        self.assertGreater(ended["frames"], 20)

    def test_a_png_snapshot_is_the_whole_picture(self):
        page = self.ready()
        self.choose(page, "right")
        with open(self.snapshot(page, "Snapshot (PNG)").path(), "rb") as file:
            data = file.read()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        self.assertEqual((int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")), (640, 360))


@unittest.skipUnless(os.access(PROGRAM, os.X_OK), f"the program is not built: '{PROGRAM}'")
class ProgramTokenTests(TokenTests):
    make_server = Program


@unittest.skipUnless(os.access(PROGRAM, os.X_OK), f"the program is not built: '{PROGRAM}'")
class AreasTests(Case):
    """Areas that are drawn over the picture, and what the program then covers and leaves out."""
    AREA = [[0, 0], [0.25, 0], [0.25, 0.5], [0, 0.5]]
    BLUE = (0, 0, 255)

    @staticmethod
    def make_server(_):
        return Program(text=json.dumps({
            "control": {"listen": "127.0.0.1:0"},
            "stages": [
                {"id": "left", "use": "test-source", "size": "640x360", "rate": 15, "live": True, "pattern": "bars", "number": False},
                {"id": "hide", "use": "mask", "areasFile": "areas.json", "areas": [{"polygon": AreasTests.AREA, "with": "#0000ff"}]},
                {"id": "motion", "use": "motion-detect"},
                {"id": "watch", "use": "null-sink"}]}))

    def draw(self, stage):
        page = self.open()
        page.locator("#list tbody tr").nth(3).wait_for()
        self.choose(page, stage)
        page.get_by_role("button", name="over the picture…").click()
        picture = page.locator("#areas-picture")
        until(lambda: picture.evaluate("image => image.naturalWidth") > 0, "there is a picture under the areas")
        return page

    def pixel(self, stage, x, y):
        """Red, green and blue at a place of a stage's picture, in fractions of its sides."""
        picture = until(lambda: self.server.get(f"api/v1/stages/{stage}/picture?format=png"), f"a picture of {stage}")
        raw = subprocess.run(["ffmpeg", "-v", "error", "-i", "-", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], input=picture,
                             stdout=subprocess.PIPE, check=True).stdout
        place = (int(y * 360) * 640 + int(x * 640)) * 3
        return tuple(raw[place:place + 3])

    def is_covered(self, x, y, color):
        return all(abs(a - b) < 16 for a, b in zip(self.pixel("hide", x, y), color))

    def kept(self):
        """The areas of the file; none as long as it is not there."""
        path = os.path.join(self.server.folder.name, "areas.json")
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return json.load(file)["areas"]

    @staticmethod
    def click(page, x, y):
        box = page.locator("#areas-overlay").bounding_box()
        page.mouse.click(box["x"] + x * box["width"], box["y"] + y * box["height"])

    def in_effect(self, page, count):
        words = "1 area is in effect" if count == 1 else f"{count} areas are in effect"
        until(lambda: page.locator("#areas-said").inner_text().startswith(words), words)

    def test_the_keyboard_draws_an_area_that_is_covered_and_kept(self):
        page = self.draw("hide")
        self.assertTrue(self.is_covered(0.1, 0.1, self.BLUE))
        self.assertFalse(self.is_covered(0.5, 0.5, self.BLUE))
        page.get_by_role("button", name="Add a rectangle").focus()
        page.keyboard.press("Enter")
        self.in_effect(page, 2)
        until(lambda: self.is_covered(0.5, 0.5, self.BLUE), "the rectangle in the middle is covered")
        # The focus is on it.
        for _ in range(30):
            page.keyboard.press("ArrowRight")
        until(lambda: self.is_covered(0.8, 0.5, self.BLUE) and not self.is_covered(0.5, 0.5, self.BLUE), "it has moved")
        until(lambda: len(self.kept()) == 2 and abs(self.kept()[1]["polygon"][0][0] - 0.7) < 0.001, "the file has it")
        self.assertEqual(self.kept()[0], {"polygon": self.AREA, "with": "#0000ff"})
        self.assertTrue(page.locator("#areas-kept").is_visible())
        self.assert_no_violation(page, "the areas")
        self.keep(page, "areas")
        page.keyboard.press("Delete")
        self.in_effect(page, 1)
        until(lambda: not self.is_covered(0.8, 0.5, self.BLUE), "it is covered no more")
        # What a person asked for is what another page shows.
        page.get_by_role("button", name="Close").last.click()
        self.assertEqual(self.complained(), [])

    def test_the_mouse_draws_a_triangle_and_drags_it(self):
        page = self.draw("hide")
        page.get_by_role("button", name="Draw an area").click()
        for x, y in [(0.5, 0.2), (0.9, 0.2), (0.7, 0.8), (0.5, 0.2)]:
            self.click(page, x, y)
        self.in_effect(page, 2)
        until(lambda: self.is_covered(0.7, 0.4, self.BLUE), "its middle is covered")
        self.assertFalse(self.is_covered(0.52, 0.7, self.BLUE), "beside it nothing is")
        box = page.locator("#areas-overlay").bounding_box()
        page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.4 * box["height"])
        page.mouse.down()
        page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"], steps=5)
        page.mouse.up()
        until(lambda: self.is_covered(0.6, 0.5, self.BLUE) and not self.is_covered(0.84, 0.25, self.BLUE), "it has moved")
        page.locator("#areas-cover").select_option("pixelate")
        until(lambda: [area["with"] for area in self.kept()] == ["#0000ff", "pixelate"], "its cover is another")
        self.assertEqual(self.complained(), [])

    def test_areas_without_a_file_are_to_be_pasted(self):
        page = self.draw("motion")
        self.assertFalse(page.locator("#areas-cover-row").is_visible())
        page.get_by_role("button", name="Add a rectangle").click()
        self.in_effect(page, 1)
        self.assertFalse(page.locator("#areas-kept").is_visible())
        page.get_by_text("These areas are not kept").click()
        text = page.locator("#areas-json").input_value()
        self.assertEqual(json.loads("{" + text + "}"), {"ignore": [{"polygon": [[0.4, 0.4], [0.6, 0.4], [0.6, 0.6], [0.4, 0.6]]}]})
        page.get_by_role("button", name="Close").last.click()
        # The figure by which a person chooses the options.
        until(lambda: page.locator("#stage .curve polyline").get_attribute("points"), "the curve of 'level' is drawn")
        self.assertEqual(self.complained(), [])


# What holds with both is asked of the program where there is one, and of its stand-in only then if BOTH is set: the same in half the time.
if os.access(PROGRAM, os.X_OK) and not os.environ.get("BOTH"):
    for name in [name for name in vars(PageTests) if name.startswith("test_")]:
        setattr(MockTests, name, None)
# Alone they are no tests: they have no server of their own kind.
del PageTests



if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    browser.close()
    playwright.stop()
    sys.exit(0 if result.wasSuccessful() else 1)
