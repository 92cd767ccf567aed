#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures of docs/recipes.md and docs/first-chain.md with the examples they name. Needs ffmpeg, a YuNet model and frei0r-plugins.
set -euo pipefail
cd "$(dirname "$0")/.."
host=${FRAMEHOST:-.build/release/framehost}
mkdir -p docs/pictures examples/out
# NAME ARGUMENTS…
picture() { ffmpeg -nostdin -v error -y "${@:2}" -frames:v 1 -q:v 4 -update 1 "docs/pictures/$1.jpg"; }

"$host" --quiet examples/blur-faces.json
picture recipe-blur -ss 4 -i examples/media/portrait.mp4 -ss 4 -i examples/out/blur-faces.mp4 -filter_complex '[0]scale=400:-2[a];[1]scale=400:-2[b];[a]pad=iw+8:ih:0:0:white[a];[a][b]hstack'

rm -f examples/out/face-*.mp4
"$host" --quiet examples/record-on-face.json --set face.draw=true --set face.effect=box --set face.events=false --for 5
picture recipe-face -ss 2 -i examples/out/face-0001.mp4 -vf scale=480:-2
rm -f examples/out/face-*.mp4

"$host" --quiet examples/door-camera.json --for 40 2>/dev/null
picture recipe-door -ss 5 -i "$(find examples/out -name 'door-*.mp4' | sort | tail -1)" -vf scale=480:-2

# Three cameras for four-cameras.json; the fourth is missing.
cameras=$(mktemp --suffix=.json --tmpdir=examples)
trap 'rm -f "$cameras"; kill $(jobs -p) 2>/dev/null || true' EXIT
cat >"$cameras" <<'END'
{
  "stages": [
    { "id": "clip", "use": "file-source", "path": "media/portrait.mp4", "pace": "realtime", "loop": true },
    { "id": "small", "use": "crop-orient", "size": "640x360" },
    { "id": "h1", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency", "bitrateKbps": 1500, "keyframeSeconds": 1 },
    { "id": "door", "use": "rtsp-sink", "port": 8501, "path": "/door" },
    { "id": "dark", "use": "frei0r", "from": "small", "effect": "vignette" },
    { "id": "turned", "use": "crop-orient", "mirror": true },
    { "id": "h2", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency", "bitrateKbps": 1500, "keyframeSeconds": 1 },
    { "id": "yard", "use": "rtsp-sink", "port": 8501, "path": "/yard" },
    { "id": "balls", "use": "test-source", "size": "640x360", "rate": 25, "live": true, "pattern": "balls" },
    { "id": "h3", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency", "bitrateKbps": 1500, "keyframeSeconds": 1 },
    { "id": "gate", "use": "rtsp-sink", "port": 8501, "path": "/gate" }
  ]
}
END
"$host" --quiet "$cameras" --for 20 &
sleep 2
"$host" --quiet examples/four-cameras.json --for 10 2>/dev/null &
sleep 6
"$host" snapshot 127.0.0.1:8080 wall docs/pictures/recipe-wall.jpg --width 640 --overwrite
wait

first=$(mktemp -d)
cat >"$first/first.json" <<'END'
{
  "stages": [
    { "id": "camera", "use": "test-source", "size": "1280x720", "rate": 30, "frames": 70, "pattern": "balls" },
    { "id": "square", "use": "crop-orient", "aspect": "1:1", "size": "720x720", "mirror": true },
    { "id": "h264", "use": "x264-encoder", "bitrateKbps": 2500 },
    { "id": "file", "use": "recorder", "path": "first.mp4" }
  ]
}
END
"$host" --quiet "$first/first.json"
picture first-chain -ss 2 -i "$first/first.mp4" -vf scale=360:-1
rm -r "$first"
