# SPDX-License-Identifier: Apache-2.0
"""Judges motion-detect beside Motion 4.5 (Debian's package `motion`, as its configuration file comes) on clips whose motion is known.

    python3 Tests/Soak/motion.py [--clips DIR] [--media DIR] [--program .build/release/framehost] [--tests .build/release/framehostPackageTests.xctest] [--alone]

The clips are those of Tests/MovingScenes, which the test MovingClips writes into DIR, and those of `--media` that have a truth here. Motion plays
each in real time; the table says for both programs how many of the times at which something moves were found, and how many times motion began where
nothing moves. Ends with 1 where motion-detect finds less than 98 %, or begins wrongly more than half as often as Motion (once, where Motion does so
once or never). Needs ffmpeg; with Motion, 20 minutes and a quiet machine.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

# When something moves, in seconds. Clips that begin with motion get a still picture of 6 s before them and after them.
MEDIA = {
    "no_face_bottles.mp4": (0, [[5.5, 7.3], [11, 13.7], [15.5, 17.9], [21.6, 24.6], [27, 29.2], [30.5, 32.3], [34.3, 37]]),
    "webcam_woman.mkv": (6, [[6, 9.6]]),
    "webcam_man.mkv": (6, [[6, 8.9]]),
    "webcam_3people_720p_audio.mp4": (6, [[6, 14.2]]),
    "two_people_tilted.mp4": (6, [[6, 10.6]]),
    "phone_portrait_rotated.mp4": (6, [[6, 8.9]]),
}
CONFIGURATION = "/etc/motion/motion.conf"
AT_ONCE = 3
# Motion's times are known to a second and a half: its log has whole seconds.
SLACK = 1.5


def make_clips(options):
    """Clips as H.264, each with a .json of its truth beside it."""
    os.makedirs(options.clips, exist_ok=True)
    if not glob.glob(f"{options.clips}/*.json"):
        environment = dict(os.environ, FRAMEHOST_MOTION_CLIPS=os.path.abspath(options.clips))
        subprocess.run([options.tests, "--testing-library", "swift-testing", "--filter", "MovingClips"], env=environment, check=True)
        for path in glob.glob(f"{options.clips}/*.y4m"):
            encode(path, path[:-3] + "mp4", [])
            os.remove(path)
    for name, (still, truth) in MEDIA.items():
        target = f"{options.clips}/{os.path.splitext(name)[0]}"
        if not options.media or not os.path.exists(f"{options.media}/{name}") or os.path.exists(target + ".json"):
            continue
        pad = ["-vf", f"tpad=start_mode=clone:start_duration={still}:stop_mode=clone:stop_duration={still},format=yuv420p"]
        encode(f"{options.media}/{name}", target + ".mp4", pad)
        seconds = float(subprocess.check_output(["ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", target + ".mp4"]))
        with open(target + ".json", "w") as file:
            json.dump({"seconds": seconds, "truth": truth}, file)


def encode(source, target, filters):
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", "-noautorotate", "-i", source, *filters, "-an", "-c:v", "libx264",
                    "-preset", "veryfast", "-crf", "14", target], check=True)


def judge(truth, starts, seen, slack):
    """How many times of motion were found, and how many starts are false. `seen`: (from, to)."""
    found = sum(any(a <= to + slack and b >= begin - slack for a, b in seen) for begin, to in truth)
    false = sum(not any(begin - 0.2 - slack <= start <= to + 1 + slack for begin, to in truth) for start in starts)
    return found, false


def ours(program, clip, folder):
    """Starts, and times of motion, by the events of a run."""
    chain = os.path.join(folder, "chain.json")
    with open(chain, "w") as file:
        json.dump({"stages": [{"id": "clip", "use": "file-source", "path": clip}, {"id": "motion", "use": "motion-detect"},
                              {"id": "end", "use": "null-sink"}]}, file)
    run = subprocess.run([program, chain, "--events", "--quiet"], capture_output=True, text=True, check=True)
    starts, seen = [], []
    for line in run.stdout.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "motion-began":
            starts.append(event["pts"])
        elif event.get("event") == "motion-ended":
            seen.append((starts[-1], starts[-1] + event["seconds"]))
    return starts, seen


def motions(names, options, folder):
    """Of each clip what Motion said, as (starts, seen)."""
    answers = {}
    for first in range(0, len(names), AT_ONCE):
        batch = names[first:first + AT_ONCE]
        work = tempfile.mkdtemp(dir=folder)
        longest = 0
        with open(CONFIGURATION) as file:
            text = file.read()
        for key, value in {"log_file": f"{work}/log", "log_level": "7", "webcontrol_port": "0", "stream_port": "0", "movie_output": "off",
                           "target_dir": work}.items():
            text = re.sub(rf"^{key} .*$", f"{key} {value}", text, flags=re.M)
        text = re.sub(r"^video_device .*$", "", text, flags=re.M)
        for number, name in enumerate(batch):
            longest = max(longest, truth_of(options, name)["seconds"])
            size = subprocess.check_output(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "stream=width,height", "-of",
                                            "csv=p=0", f"{options.clips}/{name}.mp4"], text=True).strip().split(",")
            says = "\n".join(f"on_{when} echo {word} {number} %s %q >> {work}/events" for when, word in
                             (("event_start", "start"), ("motion_detected", "motion")))
            with open(f"{work}/{number}.conf", "w") as file:
                file.write(f"camera_id {number + 1}\ncamera_name k{number}k\nnetcam_url file://{options.clips}/{name}.mp4\n"
                           f"width {size[0]}\nheight {size[1]}\n{says}\n")
            text += f"camera {work}/{number}.conf\n"
        with open(f"{work}/motion.conf", "w") as file:
            file.write(text)
        run = subprocess.Popen(["motion", "-n", "-c", f"{work}/motion.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(longest + 5)
        run.terminate()
        run.wait(30)
        for number, name in enumerate(batch):
            answers[name] = answer(work, number, truth_of(options, name)["seconds"])
    return answers


def answer(work, number, seconds):
    """What Motion said of one clip. Its times become the clip's by when it opened the file and when it was at its end."""
    with open(f"{work}/log", errors="replace") as file:
        log = file.read()

    def moments(words):
        found = re.findall(rf"k{number}k\] \[\w+\] \[\w+\] \[(\w+ \d+ [\d:]+)\] {words}", log)
        year = time.localtime().tm_year
        return [time.mktime(time.strptime(f"{year} {moment}", "%Y %b %d %H:%M:%S")) for moment in found]

    begin = moments(r"netcam_rtsp_connect: norm: Camera \(\w+\) connected")[0]
    end = (moments(r"netcam_rtsp_read_image: norm: av_read_frame: End of file") or [begin + seconds])[0]
    scale = seconds / max(end - begin, 1)
    lines = open(f"{work}/events").read().split("\n") if os.path.exists(f"{work}/events") else []
    events = [(word, (float(at) - begin) * scale) for word, camera, at, _ in (line.split() for line in lines if line.count(" ") == 3)
              if int(camera) == number and float(at) <= end + 1]
    return [at for word, at in events if word == "start"], [(at, at) for word, at in events if word == "motion"]


def truth_of(options, name):
    with open(f"{options.clips}/{name}.json") as file:
        return json.load(file)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--clips", default=".build/motion-clips")
    options.add_argument("--media", default=os.environ.get("FRAMEHOST_MEDIA"))
    options.add_argument("--program", default=".build/release/framehost")
    options.add_argument("--tests", default=".build/release/framehostPackageTests.xctest")
    options.add_argument("--alone", action="store_true", help="without Motion")
    options = options.parse_args()
    options.clips = os.path.abspath(options.clips)
    make_clips(options)
    names = sorted(os.path.basename(path)[:-5] for path in glob.glob(f"{options.clips}/*.json"))
    sums, isWell = [0] * 5, True
    with tempfile.TemporaryDirectory() as folder:
        theirs = {} if options.alone else motions(names, options, folder)
        print(f"{'clip':28} {'moves':>6} {'found':>6} {'false':>6}   Motion: found, false")
        for name in names:
            truth = truth_of(options, name)["truth"]
            found, false = judge(truth, *ours(os.path.abspath(options.program), f"{options.clips}/{name}.mp4", folder), 0)
            row = [len(truth), found, false, *(judge(truth, *theirs[name], SLACK) if theirs else (0, 0))]
            sums = [a + b for a, b in zip(sums, row)]
            print(f"{name:28} {row[0]:6} {row[1]:6} {row[2]:6}" + ("" if options.alone else f"           {row[3]:6} {row[4]:6}"))
            if false > max(1, row[4] // 2):
                isWell = False
                print(f"{name}: begins wrongly too often", file=sys.stderr)
    print(f"{'all':28} {sums[0]:6} {sums[1]:6} {sums[2]:6}" + ("" if options.alone else f"           {sums[3]:6} {sums[4]:6}"))
    if sums[1] < 0.98 * sums[0]:
        isWell = False
        print(f"found {sums[1]} of {sums[0]}", file=sys.stderr)
    sys.exit(0 if isWell else 1)


if __name__ == "__main__":
    main()
