# SPDX-License-Identifier: Apache-2.0
"""The Indexed Job against its schema, and what the schema lets through. It runs nowhere here; its commands do, one after the other."""
import json
import os
import subprocess

from ray_engine import interpreter

VALIDATE = """
import json, sys, yaml, kubernetes_validate
documents = list(yaml.safe_load_all(sys.stdin))
for document in documents:
    kubernetes_validate.validate(document, "1.33", strict=True)
json.dump(documents, sys.stdout)
"""


def test(work, root, random, kills):
    python = interpreter(root)
    out = work.folder / "kubernetes-out"
    command = [work.program, "batch", str(work.chain), str(work.clips), "--out", str(out), "--on", "kubernetes", "--tasks", "3"]
    refused = subprocess.run([*command, "--volume", "archive:/mnt/archive"], capture_output=True, text=True)
    assert refused.returncode == 2 and "must be in the folder of a --volume" in refused.stderr, f"status {refused.returncode}: {refused.stderr}"
    # A value that Kubernetes would expand.
    written = subprocess.run(
        [*command, "--volume", f"archive:{work.folder}", "--image", "registry/framehost:1", "--tasks-at-once", "2"],
        capture_output=True, text=True, env=dict(os.environ, SIZE="320x180", FRAMEHOST_ODD="$(HOME)"))
    assert written.returncode == 0, written.stderr
    jobs = validate(python, written.stdout)
    for text in [written.stdout.replace("completionMode", "completionMod"), written.stdout.replace("parallelism: 2", "parallelism: two")]:
        try:
            validate(python, text)
        except AssertionError:
            continue
        raise AssertionError("a wrong manifest passed the schema, so the right one's passing says nothing")
    job, report = jobs
    assert job["spec"]["completionMode"] == "Indexed" and job["spec"]["completions"] == 3 and job["spec"]["parallelism"] == 2, job
    assert job["spec"]["backoffLimitPerIndex"] == 3 and job["spec"]["podReplacementPolicy"] == "Failed", job
    for document, action in [(job, "FailIndex"), (report, "FailJob")]:
        first, second = document["spec"]["podFailurePolicy"]["rules"]
        pod = document["spec"]["template"]["spec"]
        container = pod["containers"][0]
        # The schema takes any word for these.
        assert first == {"action": action, "onExitCodes": {"containerName": container["name"], "operator": "In", "values": [2]}}, first
        assert second == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}, second
        assert pod["restartPolicy"] == "Never", pod
        assert container["image"] == "registry/framehost:1"
        assert container["env"] == [{"name": "SIZE", "value": "320x180"}], container["env"]
        assert [mount["mountPath"] for mount in container["volumeMounts"]] == [str(work.folder)]
        memory = container["resources"]["limits"]["memory"]
        assert memory.endswith("Mi") and 96 < int(memory[:-2]) < 2000 and container["resources"]["requests"]["memory"] == memory, container
    # What the pods would do, as Kubernetes reads commands.
    places = os.environ.get("PATH", "")
    shims = work.folder / "pod"
    shims.mkdir()
    (shims / "framehost").symlink_to(work.program)
    for document, indexes in [(job, range(3)), (report, [None])]:
        words = [word.replace("$$", "$") for word in document["spec"]["template"]["spec"]["containers"][0]["command"]]
        for index in indexes:
            environment = dict(os.environ, SIZE="320x180", PATH=f"{shims}:{places}")
            if index is not None:
                environment["JOB_COMPLETION_INDEX"] = str(index)
            done = subprocess.run(words, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"index {index}: status {done.returncode}: {done.stderr}"
    figures = work.check(out, next((out / ".framehost/jobs").iterdir()) / "report.json")
    assert figures["present"] == work.count, figures
    return "two Jobs fit the schema of 1.33; their commands did every file once"


def validate(python, text):
    done = subprocess.run([python, "-c", VALIDATE], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
