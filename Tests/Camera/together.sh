# SPDX-License-Identifier: Apache-2.0
# The end of job.sh: a camera, a sound card and motion sensors in one recording, each pulled out alone and put back; then a card whose sound another
# program makes. The sound card is QEMU's AC97, which hears a microphone of the machine outside (vm); the sensors are those of sensor-hub.c.
# What is recorded goes into memory first: a write to the machine outside can take a second. The sound is Opus of 8000 Hz: this processor computes floats
# slowly, and AAC takes it several times as long.
for module in snd-intel8x0 snd-aloop uhid hid-sensor-hub hid-sensor-trigger hid-sensor-accel-3d hid-sensor-gyro-3d hid-sensor-rotation; do modprobe $module; done
mkdir /tmp/together
is_sensor() { grep -qx "$1" /sys/bus/iio/devices/*/name; }
plug_hub() {
  ./sensor-hub 2>>hub.log &
  hub=$!
  for sensor in accel_3d gyro_3d dev_rotation; do until_true $sensor is_sensor $sensor; done
}
# all_back NAME LOST BACK: until each loss is over. A device can be silent for a second besides, where this machine stands still.
is_back() { [ "$(grep -c "\"event\":\"$2\"" "$1.events")" = "$(grep -c "\"event\":\"$3\"" "$1.events")" ]; }
all_back() { until_true "$3 of $1" is_back "$@"; }
# returned WHAT: it is there again, since now.
returned() { echo "$1 $(cut -d' ' -f1 /proc/uptime)" >>together.returned; }

plug_hub
"$host" describe alsa-source >cards 2>&1
# Its driver's folder has a link with its address.
driver=/sys/bus/pci/drivers/snd_intel8x0
card=$(basename "$(echo $driver/0000:*)")
motion() { echo "{ \"id\": \"$1\", \"use\": \"motion-source\", \"device\": \"$2\", \"rate\": $3 }"; }
sound() { echo "{ \"id\": \"mic\", \"use\": \"alsa-source\", \"device\": \"$1\", \"channels\": 1, \"sampleRate\": 8000, \"periodMs\": 40 }"; }
dump() { echo "{ \"id\": \"$1\", \"use\": \"null-sink\", \"dump\": \"/tmp/together/$2\" }"; }
echo "{ \"stages\": [
  { \"id\": \"cam\", \"use\": \"v4l2-source\", \"device\": \"vivid\", \"format\": \"nv12\", \"size\": \"320x180\", \"rate\": 5, \"controls\": { $still } },
  { \"id\": \"h264\", \"use\": \"x264-encoder\", \"preset\": \"ultrafast\", \"crf\": 1 },
  $(sound hw:CARD=I82801AAICH,DEV=0), { \"id\": \"opus\", \"use\": \"audio-encoder\", \"codec\": \"opus\" },
  $(motion gyro gyro_3d 50),
  { \"id\": \"file\", \"use\": \"recorder\", \"from\": [\"h264\", \"opus\", \"gyro\"], \"path\": \"/tmp/together/together.mp4\" },
  $(motion accel accel_3d 20), $(dump accel-csv accel.csv), $(motion turn dev_rotation 20), $(dump turn-csv turn.csv) ] }" >together.json
begin together
sleep 3
say "the sound card is pulled out"
echo "$card" >$driver/unbind
await together 'device-lost".*ENODEV.*' 1
sleep 2
echo "$card" >$driver/bind
returned card
all_back together device-lost device-back
sleep 3
say "the sensors are pulled out"
kill $hub
wait $hub
await together 'motion-lost".*is gone.*' 3
sleep 2
plug_hub
returned sensors
all_back together motion-lost motion-returned
sleep 3
say "the camera is pulled out"
echo vivid.0 >/sys/bus/platform/drivers/vivid/unbind
await together 'camera-lost".*ENODEV.*' 1
sleep 1
echo vivid.0 >/sys/bus/platform/drivers/vivid/bind
returned camera
all_back together camera-lost camera-back
sleep 2
finish together
kill $hub
wait $hub
cp /tmp/together/* .

# What is played at device 0 of the card Loopback is captured at its device 1. Without a player it is silent.
play() {
  ffmpeg -nostdin -v error -re -f lavfi -i sine=frequency=1000:sample_rate=8000 -c:a pcm_s16le -f alsa plughw:CARD=Loopback,DEV=0 2>>loop.player &
  player=$!
  until_true "the player of loop" grep -q RUNNING /proc/asound/Loopback/pcm0p/sub0/status
}
echo "{ \"stages\": [ $(sound hw:CARD=Loopback,DEV=1), $(dump raw loop.raw) ] }" >loop.json
say loop
play
"$host" run loop.json --stats /out/loop.stats --events >loop.events 2>loop.errors &
run=$!
until_true "sound of loop" test -s /tmp/together/loop.raw
sleep 2
say "its sound card is pulled out"
echo snd_aloop.0 >/sys/bus/platform/drivers/snd_aloop/unbind
kill $player
wait $player
await loop 'device-lost".*ENODEV.*' 1
sleep 1
echo snd_aloop.0 >/sys/bus/platform/drivers/snd_aloop/bind
returned loop
all_back loop device-lost device-back
play
returned player
sleep 2
finish loop
kill $player
wait $player
cp /tmp/together/loop.raw .
