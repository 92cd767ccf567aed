# SPDX-License-Identifier: Apache-2.0
# What the guest does (Tests/Camera/vm): framehost's own binary with the cameras of the drivers vivid and v4l2loopback. Results lie in /out and are
# judged by check.py. LOSSES is how often the camera is lost in a row.
# The guest's processor is five to twenty times slower than it should be: nothing here happens after a time, everything after an event.
cd /out
. ./environment
host="$BINARIES/framehost"
small='"size": "320x180", "rate": 30'
still='"test_pattern": "100% Red", "osd_text_mode": "None", "brightness": 128'
rest='{ "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "crf": 1 }, { "id": "file", "use": "recorder", "finalize": "never", "overwrite": true, "path"'
say() { echo "[$(cut -d' ' -f1 /proc/uptime)] $*"; }
# chain NAME OPTIONS: a recording NAME.mp4 of the camera.
chain() { echo "{ \"stages\": [ { \"id\": \"cam\", \"use\": \"v4l2-source\", $2 }, $rest: \"/out/$1.mp4\" } ] }" >"$1.json"; }
# record NAME MORE…: runs it; figures in NAME.stats, events in NAME.events, exit status in NAME.status.
record() {
  local name=$1
  shift
  say "$name"
  "$host" run "$name.json" --stats "/out/$name.stats" --events "$@" >"$name.events" 2>"$name.errors"
  echo $? >"$name.status"
}
# begin NAME MORE…: the same beside this script, until it has frames; finish NAME ends it with a SIGTERM.
begin() {
  local name=$1
  shift
  say "$name"
  "$host" run "$name.json" --stats "/out/$name.stats" --events "$@" >"$name.events" 2>"$name.errors" <&0 &
  run=$!
  await "$name" recording-did-start 1
}
finish() {
  sleep 1
  kill -TERM $run
  wait $run
  echo $? >"$1.status"
}
# await NAME EVENT COUNT: until NAME has had so many of these events; a minute at most.
await() {
  for _ in $(seq 600); do
    [ "$(grep -c "\"event\":\"$2\"" "$1.events")" -ge "$3" ] && return
    sleep 0.1
  done
  echo "$1 had no $2" >>late
}
# until_true WORDS COMMAND…: until the command succeeds; a minute at most.
until_true() {
  local words=$1
  shift
  for _ in $(seq 600); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.1
  done
  echo "$words did not come" >>late
}
# serve NAME CAMERA FILTERS: the chain's pictures go to readers as well, rtsp://127.0.0.1:8554/NAME.
serve() {
  echo "{ \"stages\": [ { \"id\": \"cam\", \"use\": \"v4l2-source\", $2 }, $3 $rest: \"/out/$1.mp4\" },
    { \"id\": \"live\", \"use\": \"rtsp-sink\", \"from\": \"h264\", \"path\": \"/$1\" } ] }" >"$1.json"
}
# read_stream NAME: keeps what a reader gets in NAME.reader.mkv, from its first packet on; reader_ends waits for its end.
read_stream() {
  ffmpeg -nostdin -v error -rtsp_transport tcp -i "rtsp://127.0.0.1:8554/$1" -map 0:v -c copy -flush_packets 1 "$1.reader.mkv" 2>"$1.reader" &
  reader=$!
  until_true "$1's reader" test -s "$1.reader.mkv"
}
reader_ends() {
  for _ in $(seq 600); do
    kill -0 $reader 2>/dev/null || break
    sleep 0.1
  done
  kill -INT $reader 2>/dev/null && echo "$1's reader did not end with the stream" >>late
  wait $reader
}

# A chain that starts before its camera is there.
chain wait "\"ifMissing\": \"wait\", $small, \"slateColor\": \"#ffffff\", \"controls\": { $still }"
begin wait
modprobe vivid n_devs=1 node_types=0x1 num_inputs=1 input_types=0
await wait camera-back 1
finish wait

say devices
"$host" devices --json >devices.json 2>devices.errors

for format in yuyv nv12; do
  chain $format "\"format\": \"$format\", $small, \"controls\": { $still }"
  "$host" check $format.json >$format.check 2>&1
  record $format --frames 300
done
chain bars "\"format\": \"i420\", $small, \"controls\": { \"test_pattern\": 0, \"osd_text_mode\": \"None\", \"brightness\": 128 }"
record bars --frames 20
chain slow "\"format\": \"nv12\", \"size\": \"320x180\", \"rate\": 10, \"controls\": { $still }"
record slow --frames 30

chain controls "\"format\": \"nv12\", $small, \"controls\": { $still }"
mkfifo /tmp/orders
exec 3<>/tmp/orders
begin controls --commands </tmp/orders
for text in '"brightness": 200' '"brightness": 999' '"brightnes": 1'; do
  echo "{ \"stage\": \"cam\", \"set\": { \"controls\": { $text } } }" >&3
done
await controls command-answered 3
finish controls

say "who may not, and who else"
chmod 660 /dev/video0
chgrp video /dev/video0
setpriv --reuid=65534 --regid=65534 --clear-groups "$host" check nv12.json >denied 2>&1
echo '{ "stages": [ { "id": "cam", "use": "v4l2-source" }, { "id": "none", "use": "null-sink" } ] }' >plain.json
setpriv --reuid=65534 --regid=65534 --groups="$(getent group video | cut -d: -f3)" "$host" run plain.json --events --frames 5 >usual.events 2>usual.errors
taskset -c 0 "$host" check plain.json >one-processor 2>&1
chain faults "$small, \"format\": \"nv12\", \"controls\": { $still }"
begin faults
"$host" run nv12.json --frames 5 >busy 2>&1
# Policy and real-time priority of each thread (proc(5), stat).
for task in /proc/$run/task/*; do echo "$(cat $task/comm) $(sed 's/.*) //' $task/stat | cut -d' ' -f39,38)" >>threads; done
# The driver's own faults, one after the other.
for fault in inject_v4l2_buf_flag_error inject_vidioc_qbuf_error inject_fatal_streaming_error disconnect; do
  say $fault
  v4l2-ctl -d /dev/video0 -c $fault=1
  case $fault in
  inject_fatal*) await faults camera-back 1 ;;
  disconnect) await faults camera-back 2 ;;
  *) sleep 1 ;;
  esac
done
v4l2-ctl -d /dev/video0 -c percentage_of_dropped_buffers=40
sleep 2
v4l2-ctl -d /dev/video0 -c percentage_of_dropped_buffers=0
finish faults

chain pulled "$small, \"format\": \"nv12\", \"controls\": { $still }"
begin pulled
sleep 1
say "pulled out"
echo vivid.0 >/sys/bus/platform/drivers/vivid/unbind
await pulled camera-lost 1
# For longer than a gap in the recording may be.
sleep 3
echo vivid.0 >/sys/bus/platform/drivers/vivid/bind
cut -d' ' -f1 /proc/uptime >returned
await pulled camera-back 1
finish pulled

# Lost again and again: pulled out, and disconnected by the driver, in turn; a recording and a reader stay.
serve losses "\"format\": \"nv12\", \"size\": \"320x180\", \"rate\": 15, \"controls\": { $still }" ""
begin losses
read_stream losses
for number in $(seq "$LOSSES"); do
  if [ $((number % 2)) = 1 ]; then
    echo vivid.0 >/sys/bus/platform/drivers/vivid/unbind
    await losses camera-lost "$number"
    echo vivid.0 >/sys/bus/platform/drivers/vivid/bind
  else
    v4l2-ctl -d /dev/video0 -c disconnect=1
    await losses camera-lost "$number"
  fi
  echo "$number $(cut -d' ' -f1 /proc/uptime)" >>losses.returned
  await losses camera-back "$number"
  # What it has open, its threads, its own memory (KiB).
  echo "$number $(ls /proc/$run/fd | wc -l) $(ls /proc/$run/task | wc -l) $(awk '/^RssAnon/ { print $2 }' /proc/$run/status)" >>losses.held
done
kill -0 $reader && echo connected >losses.connected
finish losses
reader_ends losses

# Cameras that are fed: v4l2loopback. With exclusive_caps=1 a device that was fed by write(2), as ffmpeg does, takes no second feeder.
modprobe v4l2loopback devices=3 video_nr=10,11,12 card_label=framehost,webcam,face exclusive_caps=1,0,0
is_camera() { v4l2-ctl -d "$1" --info | sed -n '/Device Caps/,$p' | grep -q 'Video Capture'; }
for format in i420 yuyv nv12; do
  echo "{ \"stages\": [ { \"id\": \"red\", \"use\": \"test-source\", \"pattern\": \"solid\", \"color\": \"#ff0000\", \"number\": false, \"size\": \"320x180\",
    \"rate\": 10, \"live\": true, \"format\": \"$format\" }, { \"id\": \"webcam\", \"use\": \"v4l2-sink\", \"device\": \"framehost\" } ] }" >sink-$format.json
  say "v4l2-sink, $format"
  "$host" run sink-$format.json --stats /out/sink-$format.stats >sink-$format.out 2>sink-$format.errors &
  sink=$!
  until_true "the camera of sink-$format" is_camera /dev/video10
  chain back-$format "\"device\": \"framehost\", \"size\": \"320x180\", \"format\": \"$format\""
  record back-$format --frames 12
  if [ $format = i420 ]; then
    "$host" run sink-i420.json --frames 2 >second 2>&1
    timeout 60 ffmpeg -nostdin -v error -f v4l2 -i /dev/video10 -frames:v 5 -f framemd5 sink-ffmpeg.md5 2>sink-ffmpeg.errors
  fi
  kill -TERM $sink
  wait $sink
  echo $? >sink-$format.status
done

# webcam CLIP DEVICE: another program feeds a camera that gives JPEG.
gives_jpeg() { v4l2-ctl -d "$1" --get-fmt-video | grep -q MJPG; }
webcam() {
  ffmpeg -nostdin -v error -re -stream_loop -1 -i "/out/$1" -c copy -f v4l2 "$2" 2>>"$1.feeder" &
  feeder=$!
  until_true "the camera that $1 feeds" gives_jpeg "$2"
}
webcam pictures.avi /dev/video11
chain mjpeg '"device": "webcam", "format": "mjpeg", "size": "320x180", "rate": 25'
record mjpeg --frames 300
kill $feeder
wait $feeder

# The whole product: a face, found and covered, encoded, recorded and streamed. Its feeder dies, which the driver says to nobody.
webcam face.avi /dev/video12
serve product '"device": "face", "format": "mjpeg", "size": "320x180", "rate": 10' \
  '{ "id": "face", "use": "face-effect", "effect": "replace", "color": "#ff00ff", "detector": "lbp", "detectionSize": 320, "smallestFace": 0.2, "every": 1, "waitMs": 5000 },'
begin product
read_stream product
sleep 5
kill -KILL $feeder
wait $feeder
await product camera-lost 1
webcam face.avi /dev/video12
cut -d' ' -f1 /proc/uptime >product.returned
await product camera-back 1
sleep 2
finish product
reader_ends product
kill $feeder
wait $feeder

. ./together.sh
say "done"
dmesg | grep -E 'Oops|BUG:|WARNING:' >kernel.faults
exit 0
