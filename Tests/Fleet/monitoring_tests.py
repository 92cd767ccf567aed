# SPDX-License-Identifier: Apache-2.0
"""The files for Prometheus and Grafana: read by their own tools, then by a real Prometheus beside real chains whose faults are real."""
import json
import os
import re
import shutil
import subprocess
import threading
import time
import unittest
import urllib.parse

from place import HOST, MONITORING, ROOT, Case, get

try:
    from grafana_foundation_sdk.cog import plugins as grafana_plugins
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard
except ImportError:
    Dashboard = None

TOKEN = "fleet-of-the-tests-0123456789"
PROMETHEUS = "127.0.0.1:9300"
# All spans of time of the shipped files are divided by this for the chains below; nothing else is changed.
FASTER = 10
MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


def run(*command, **how):
    return subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False, **how)


def faster(text):
    """A rules or configuration file with its spans of time divided: `for: 2m`, `[5m]`, `scrape_interval: 15s`."""
    def divided(match):
        return f"{match[1]}{int(match[2]) * MILLISECONDS[match[3]] // FASTER}ms{match[4]}"

    return re.sub(r"((?:for|interval): |\[)(\d+)(ms|s|m|h)\b(\]?)", divided, text)


def rules():
    return (MONITORING / "framehost.rules.yml").read_text(encoding="utf-8")


def dashboard():
    return json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))


def queries():
    """Title and query of each target of the dashboard, with values for its variables as Grafana puts them in."""
    values = {"$__rate_interval": "1m", "$instance": ".+", "$stage": ".+", "${datasource}": "prometheus"}
    found = [(panel["title"], target["expr"]) for panel in dashboard()["panels"] for target in panel.get("targets", [])]
    found += [(f"annotation {each['name']}", each["expr"]) for each in dashboard()["annotations"]["list"]]
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            # label_values(SERIES, LABEL): Grafana asks for the series and takes the label.
            series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
            found.append((f"variable {variable['name']}", f"count by ({label}) ({series})"))
    for title, query in found:
        for name, value in values.items():
            query = query.replace(name, value)
        yield title, query


class FilesTests(Case):
    """What needs no chain."""

    def test_promtoolTakesRulesAndConfiguration(self):
        shutil.copytree(MONITORING, self.folder / "monitoring")
        (self.folder / "monitoring/framehost.token").write_text(TOKEN, encoding="utf-8")
        outcome = run("promtool", "check", "config", "--lint=all", "--lint-fatal", "prometheus.yml", cwd=self.folder / "monitoring")
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        self.assertIn(f"{len(re.findall('- (?:record|alert):', rules()))} rules found", outcome.stdout)

    def test_eachAlertFiresWhenItShould(self):
        shutil.copy(MONITORING / "framehost.rules.yml", self.folder)
        shutil.copy(ROOT / "Tests/Fleet/rules-tests.yml", self.folder)
        outcome = run("promtool", "test", "rules", "rules-tests.yml", cwd=self.folder)
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        tests = (ROOT / "Tests/Fleet/rules-tests.yml").read_text(encoding="utf-8")
        for alert in re.findall(r"- alert: (\w+)", rules()):
            self.assertRegex(tests, rf"alertname: {alert}\n +exp_alerts:\n", f"{alert} is never expected")

    def test_ruleTestsFindAWrongRule(self):
        """Each alert made a little wrong: the tests of the rules must say so."""
        shutil.copy(ROOT / "Tests/Fleet/rules-tests.yml", self.folder)
        alerts = re.split(r"(?=      - alert: )", rules())
        changes = 0
        for number in range(1, len(alerts)):
            for old, new in (r"(expr: .*) == 1$", r"\1 == 2"), (r"(expr: .*) == 0$", r"\1 == 3"), (r"(expr: .*) > ([\d.]+)$", r"\1 > 1\2"), (r"for: \d+m", "for: 30m"):
                changed = re.sub(old, new, alerts[number], count=1, flags=re.M)
                if changed == alerts[number]:
                    continue
                changes += 1
                (self.folder / "framehost.rules.yml").write_text("".join([*alerts[:number], changed, *alerts[number + 1:]]), encoding="utf-8")
                outcome = run("promtool", "test", "rules", "rules-tests.yml", cwd=self.folder)
                self.assertNotEqual(outcome.returncode, 0, f"{alerts[number].splitlines()[0]} with {new}")
        self.assertGreaterEqual(changes, 14)

    def test_grafanasOwnTypesKnowEveryKey(self):
        if Dashboard is None:
            if os.environ.get("CI") == "true":
                self.fail("grafana-foundation-sdk is missing: make test-fleet installs it")
            print("\nSKIPPED dashboard's types: grafana-foundation-sdk is missing", flush=True)
            self.skipTest("grafana-foundation-sdk is missing")
        grafana_plugins.register_default_plugins()

        def lost(mine, theirs, way="dashboard"):
            if isinstance(mine, dict):
                for key, value in mine.items():
                    if not isinstance(theirs, dict) or key not in theirs:
                        yield f"{way}.{key}"
                    else:
                        yield from lost(value, theirs[key], f"{way}.{key}")
            elif isinstance(mine, list):
                if not isinstance(theirs, list) or len(mine) != len(theirs):
                    yield way
                else:
                    for index, (one, other) in enumerate(zip(mine, theirs)):
                        yield from lost(one, other, f"{way}[{index}]")
            elif mine != theirs:
                yield f"{way}: {mine!r} is {theirs!r}"

        def through(value):
            return json.loads(json.dumps(Dashboard.from_json(value), cls=JSONEncoder))

        self.assertEqual(list(lost(dashboard(), through(dashboard()))), [])
        # The way through these types shows what they do not know.
        wrong = dashboard()
        chart = next(panel for panel in wrong["panels"] if panel["type"] == "timeseries")
        chart["options"]["legnd"] = chart["targets"][0]["expresion"] = chart["fieldConfig"]["defaults"]["custom"]["lineWdth"] = 1
        self.assertEqual(len(list(lost(wrong, through(wrong)))), 3)

    def test_panelsLieBesideEachOther(self):
        taken = {}
        panels = dashboard()["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        for panel in panels:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, panel["title"])
                    taken[x, y] = panel["title"]

    def test_promtoolParsesEachQuery(self):
        each = list(queries())
        self.assertGreater(len(each), 20)
        body = "groups: [ { name: all, rules: [" + ",".join(json.dumps({"record": f"query:{n}", "expr": query}) for n, (_, query) in enumerate(each)) + "] } ]"
        (self.folder / "queries.yml").write_text(body, encoding="utf-8")
        outcome = run("promtool", "check", "rules", "--lint=none", "queries.yml", cwd=self.folder)
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        self.assertIn(f"{len(each)} rules found", outcome.stdout)


class MonitoringTests(Case):
    """Seven chains and a Prometheus, in a network of their own."""

    # Port of each chain's control server.
    PORTS = {"well": 9101, "archive": 9102, "flaps": 9103, "victim": 9104, "disk": 9105, "slow": 9106, "lonely": 9107}

    def setUp(self):
        super().setUp()
        self.assertEqual(run("ip", "link", "set", "lo", "up").returncode, 0)
        self.programs = {}

    def chain(self, name, *stages):
        value = {"control": {"listen": f"127.0.0.1:{self.PORTS[name]}", "token": "${FRAMEHOST_TOKEN}"}, "stages": stages}
        (self.folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")

    def begin(self, name):
        self.programs[name] = self.start(HOST, f"{name}.json", log=f"{name}.log", env={**os.environ, "FRAMEHOST_TOKEN": TOKEN})
        self.soon(lambda: (get(f"127.0.0.1:{self.PORTS[name]}", "/healthz", TOKEN) or [0])[0] in (200, 503), 120, lambda: self.said(f"{name}.log"))

    def kill(self, name):
        self.programs[name].kill()
        self.programs[name].wait()

    def ask(self, path, **fields):
        status, text = get(PROMETHEUS, f"/api/v1/{path}?{urllib.parse.urlencode(fields)}") or (0, "")
        return json.loads(text)["data"] if status == 200 else None

    def firing(self):
        """(alert, name of the chain) of all that fire."""
        names = {str(port): name for name, port in self.PORTS.items()}
        alerts = (self.ask("alerts") or {"alerts": []})["alerts"]
        return {(alert["labels"]["alertname"].removeprefix("Framehost"), names[alert["labels"]["instance"].rpartition(":")[2]])
                for alert in alerts if alert["state"] == "firing"}

    def is_its_own(self, alert, name):
        """Whether the chain's own figures say what an alert says that no fault here raises: a busy machine may make chains slow."""
        own = f'instance="127.0.0.1:{self.PORTS[name]}"'
        lost = 'reason=~"noBuffer|queueFull|evicted|untilKeyframe|damaged"'
        late = "max_over_time(framehost_stage_latency_seconds"
        figures = {
            "FramesLost": [f"max_over_time({series}[5m]) > 0" for series in (
                f"framehost_stage_frames_dropped_total{{{own},{lost}}}", f"framehost_link_items_dropped_total{{{own},{lost}}}",
                f'framehost_stage_figure{{{own},figure=~"dropped|missed"}}')],
            "Late": [f'{late}_count{{{own}}}[5m]) - ignoring (le) {late}_bucket{{{own},le=~"1([.]0)?"}}[5m]) > 0'],
        }
        return any((self.ask("query", query=query) or {"result": []})["result"] for query in figures.get(alert, []))

    def drip(self, path):
        """Reads a pipe at about ten pictures a second, and one of 320x240 has 115 kB."""
        def read():
            try:
                with open(path, "rb", buffering=0) as pipe:
                    while self.drips and pipe.read(11_520):
                        time.sleep(0.01)
            except OSError:
                pass

        self.drips = True
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        self.addCleanup(setattr, self, "drips", False)

    def prometheus(self):
        place = self.folder / "prometheus"
        shutil.copytree(MONITORING, place)
        for file in "prometheus.yml", "framehost.rules.yml":
            text = (MONITORING / file).read_text(encoding="utf-8")
            (place / file).write_text(faster(text), encoding="utf-8")
            self.assertNotEqual(faster(text), text)
        (place / "framehost.token").write_text(TOKEN + "\n", encoding="utf-8")
        targets = [f"127.0.0.1:{port}" for port in self.PORTS.values()]
        (place / "targets/cameras.yml").write_text(json.dumps([{"labels": {"site": "tests"}, "targets": targets}]), encoding="utf-8")
        checked = run("promtool", "check", "config", "prometheus.yml", cwd=place)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.start("prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={PROMETHEUS}", log="prometheus.log", cwd=place)
        self.soon(lambda: (get(PROMETHEUS, "/-/ready") or [0])[0] == 200, 120, lambda: self.said("prometheus.log"))

    def test_eachAlertFiresByARealFaultAndForNoOtherChain(self):
        def camera(rate=25):
            return {"id": "cam", "use": "test-source", "size": "320x240", "rate": rate, "live": True}

        h264 = {"id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 400, "keyframeSeconds": 1}

        def served(port):
            return {"id": "live", "use": "rtsp-sink", "port": port, "path": "/live", "address": "127.0.0.1"}

        def door(port):
            return {"id": "door", "use": "network-source", "url": f"rtsp://127.0.0.1:{port}/live", "decode": False}

        small = self.folder / "small"
        small.mkdir()
        mounted = run("mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", small)
        self.assertEqual(mounted.returncode, 0, mounted.stdout)
        self.addCleanup(lambda: run("umount", "-l", small))
        os.mkfifo(self.folder / "pipe")
        self.chain("well", camera(), h264, served(8601))
        self.chain("archive", door(8601), {"id": "file", "use": "recorder", "path": "archive.mp4"})
        self.chain("flaps", camera(), h264, served(8602))
        self.chain("victim", door(8602), {"id": "file", "use": "recorder", "path": "victim.mp4"})
        self.chain("disk", camera(), h264, {"id": "file", "use": "recorder", "path": "small/film.mp4"}, {"id": "end", "use": "null-sink", "from": "h264"})
        self.chain("slow", camera(), {"id": "out", "use": "y4m-sink", "path": "pipe", "link": {"queue": 30, "whenFull": "dropOldest"}})
        self.chain("lonely", camera(), h264, served(8603))

        self.prometheus()
        self.drip(self.folder / "pipe")
        for name in self.PORTS:
            self.begin(name)
        # The server that flaps is killed and started anew, more often than the alert asks for: on a busy machine a process can take more
        # processor time before its first scrape than the one before took until its last, and that restart is not seen. Then it stays away.
        victim = f"127.0.0.1:{self.PORTS['victim']}"

        def is_back(count):
            # A busy machine may lose the stream once more by itself.
            figures = (get(victim, "/metrics", TOKEN) or (0, ""))[1]
            losses = re.search(r'figure="losses"} (\d+)\n', figures)
            return losses and int(losses[1]) >= count and 'framehost_stage_state{stage="door",state="streaming"} 1\n' in figures

        seen = set()
        for count in range(1, 7):
            self.kill("flaps")
            self.begin("flaps")
            self.soon(lambda: is_back(count), 120, lambda: self.said("victim.log"))
            # A scrape is a second and a half.
            time.sleep(2)
            seen.update(self.firing())
        expected = {
            ("Restarts", "flaps"), ("SourceUnsteady", "victim"), ("StageFailed", "disk"), ("Unhealthy", "disk"), ("FramesLost", "slow"), ("Late", "slow"),
            ("NoReader", "lonely"),
        }
        self.soon(lambda: seen.update(self.firing()) or seen >= expected, 120, lambda: f"{sorted(seen)}: missing {sorted(expected - seen)}")
        self.kill("flaps")
        expected |= {("Down", "flaps"), ("SourceAway", "victim"), ("Unhealthy", "victim")}
        self.soon(lambda: seen.update(self.firing()) or seen >= expected, 120, lambda: f"{sorted(seen)}: missing {sorted(expected - seen)}")
        self.assertLessEqual(expected, seen)
        self.assertEqual([pair for pair in sorted(seen - expected) if not self.is_its_own(*pair)], [])
        self.assertEqual({alert for alert, _ in seen}, set(re.findall(r"- alert: Framehost(\w+)", rules())), "an alert that nothing here raises")
        # Labels of the target file are in the alert.
        self.assertEqual({alert["labels"]["site"] for alert in self.ask("alerts")["alerts"]}, {"tests"})
        # No rule failed while it was evaluated.
        for group in self.ask("rules")["groups"]:
            for rule in group["rules"]:
                self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])
        self.answersEveryQuery()
        # What is mended is quiet again.
        self.begin("flaps")
        self.soon(lambda: not {("Down", "flaps"), ("SourceAway", "victim"), ("Unhealthy", "victim")} & self.firing(), 120, lambda: str(self.firing()))

    def answersEveryQuery(self):
        now = time.time()
        series = 0
        for title, query in queries():
            # Grafana's rate interval is four scrapes at least; here a scrape is a second and a half.
            answer = self.ask("query_range", query=faster(query), start=now - 30, end=now, step=1)
            self.assertIsNotNone(answer, f"{title}: {query}")
            values = [value for each in answer["result"] for _, value in each["values"] if value not in ("NaN", "+Inf")]
            self.assertTrue(values, f"{title} has no data: {query}")
            series += len(answer["result"])
        print(f"\nmonitoring: {len(list(queries()))} queries of the dashboard gave {series} series")


if __name__ == "__main__":
    unittest.main(verbosity=2)
