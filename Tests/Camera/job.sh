# What the guest does (Tests/Camera/vm): framehost's own binary with the camera of the driver vivid. Results lie in /out and are judged by check.py.
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
chain faults "$small, \"format\": \"nv12\", \"controls\": { $still }"
begin faults
"$host" run nv12.json --frames 5 >busy 2>&1
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
sleep 1
echo vivid.0 >/sys/bus/platform/drivers/vivid/bind
cut -d' ' -f1 /proc/uptime >returned
await pulled camera-back 1
finish pulled
say "done"
dmesg | grep -E 'Oops|BUG:|WARNING:' >kernel.faults
exit 0
