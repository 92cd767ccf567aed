#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A picture of OBS Studio whose Media Source shows a stream, without a screen: OBS on Xvfb, with Mesa's software renderer and settings of its own.
#
#   scripts/obs-picture.sh rtsp://host:port/path OUT.png [FFMPEG_OPTIONS]
#
# FFMPEG_OPTIONS go to the Media Source, such as rtsp_transport=tcp; without them it asks for UDP first, as OBS comes.
# Debian packages: obs-studio obs-plugins xvfb xauth x11-apps imagemagick libgl1-mesa-dri.
set -eu
url=$1 out=$(realpath -m "$2") options=${3:-}
for tool in obs xvfb-run xwd convert; do
  command -v "$tool" > /dev/null || { echo "obs-picture: '$tool' is not installed; the packages are named in this file" >&2; exit 1; }
done

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
config=$home/.config/obs-studio
mkdir -p "$config/basic/scenes" "$config/basic/profiles/Untitled" "$home/run"
chmod 700 "$home/run"
# Without these OBS opens its wizard and looks for updates.
cat > "$config/global.ini" << END
[General]
FirstRun=true
Pre19Defaults=false
Pre21Defaults=false
Pre23Defaults=false
Pre24.1Defaults=false
EnableAutoUpdates=false
[Basic]
Profile=Untitled
ProfileDir=Untitled
SceneCollection=RTSP
SceneCollectionFile=RTSP
END
cat > "$config/basic/profiles/Untitled/basic.ini" << END
[General]
Name=Untitled
[Video]
BaseCX=1280
BaseCY=720
OutputCX=1280
OutputCY=720
FPSCommon=30
END
cat > "$config/basic/scenes/RTSP.json" << END
{ "name": "RTSP", "current_scene": "Scene", "current_program_scene": "Scene", "scene_order": [{ "name": "Scene" }], "groups": [],
  "sources": [
    { "id": "ffmpeg_source", "versioned_id": "ffmpeg_source", "name": "rtsp-sink", "settings":
      { "is_local_file": false, "input": "$url", "ffmpeg_options": "$options", "restart_on_activate": false, "reconnect_delay_sec": 1 } },
    { "id": "scene", "versioned_id": "scene", "name": "Scene", "settings":
      { "id_counter": 1, "custom_size": false, "items": [
        { "name": "rtsp-sink", "id": 1, "visible": true, "locked": false, "align": 5, "rot": 0, "pos": { "x": 0, "y": 0 },
          "scale": { "x": 1, "y": 1 }, "bounds_type": 2, "bounds_align": 0, "bounds": { "x": 1280, "y": 720 } }] } }] }
END

export HOME="$home" XDG_CONFIG_HOME="$home/.config" XDG_RUNTIME_DIR="$home/run" LIBGL_ALWAYS_SOFTWARE=1 QT_QPA_PLATFORM=xcb
export OBS_SECONDS="${OBS_SECONDS:-20}" OBS_PICTURE="$home/screen.xwd"
xvfb-run -a -s "-screen 0 1280x800x24" sh -c '
  obs --multi --collection RTSP --profile Untitled --disable-updater --disable-missing-files-check > "$HOME/obs.log" 2>&1 &
  pid=$!
  sleep "$OBS_SECONDS"
  xwd -root -silent -out "$OBS_PICTURE"
  kill $pid
  wait $pid || true'
# Without the empty screen around the window.
convert "$OBS_PICTURE" -trim +repage -strip +dither -colors 64 "PNG8:$out"
sed -n "/Media Source/,/^[^\t]/p" "$home/obs.log"
