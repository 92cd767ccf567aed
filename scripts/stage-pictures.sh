#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures of docs/pictures.md with the examples it names: before, and what each makes of the same frame. Needs ffmpeg and frei0r-plugins.
set -euo pipefail
cd "$(dirname "$0")/.."
host=${FRAMEHOST:-.build/release/framehost}
mkdir -p docs/pictures examples/out
# FILE NAME [FRAME]: frame 120 of the file, 480 wide or, upright, 270 high.
picture() {
  ffmpeg -nostdin -v error -y -i "$1" -vf "select=eq(n\,${3:-120}),scale='if(gt(iw,ih),480,-2)':'if(gt(iw,ih),-2,270)'" -frames:v 1 -q:v 4 -update 1 \
    "docs/pictures/stage-$2.jpg"
}
picture examples/media/portrait.mp4 before
for example in portrait replicate time-tunnel overlay badge; do
  "$host" "examples/$example.json" --quiet
  picture "examples/out/$example.mp4" $example
done
for effect in cartoon pixeliz0r sobel vignette; do
  EFFECT=$effect "$host" examples/frei0r.json --quiet
  picture examples/out/frei0r.mp4 "frei0r-$effect"
done
"$host" examples/videosnake.json --quiet
picture examples/out/videosnake.mp4 snake 80
ffmpeg -nostdin -v error -y -ss 2 -t 4 -i examples/out/videosnake.mp4 -vf "fps=15,scale=320:-2:flags=lanczos" -c:v libwebp_anim -quality 45 \
  -compression_level 6 -loop 0 docs/pictures/stage-snake.webp
