#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures of docs/face-effect.md with examples/face.json. Needs ffmpeg, and what that example needs.
set -euo pipefail
cd "$(dirname "$0")/.."
host=${FRAMEHOST:-.build/release/framehost}
picture() { ffmpeg -nostdin -v error -y -i "$1" -vf "select=eq(n\,120),$2scale=240:240" -frames:v 1 -update 1 "docs/pictures/face-$3.jpg"; }
mkdir -p docs/pictures
picture examples/media/portrait.mp4 crop=720:720, before
for effect in pixelate blur box replace smooth; do
  EFFECT=$effect "$host" examples/face.json --quiet
  picture examples/out/face.mp4 "" $effect
done
"$host" examples/face-sticker.json --quiet
picture examples/out/face-sticker.mp4 "" sticker
