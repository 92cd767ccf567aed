// SPDX-License-Identifier: Apache-2.0

// libavcodec's own cost of AAC in real time: a tone of 48 kHz stereo, a frame of 1024 samples each 21.3 ms, encoded to
// 128 kbit/s and dropped. For Benchmarks/rtsp-sound.py.
//
//     cc -O2 -o paced-aac paced-aac.c -lavcodec -lavutil -lm && ./paced-aac SECONDS

#include <libavcodec/avcodec.h>
#include <libavutil/channel_layout.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

int main(int count, char **words) {
  const int seconds = count > 1 ? atoi(words[1]) : 10;
  const AVCodec *codec = avcodec_find_encoder(AV_CODEC_ID_AAC);
  AVCodecContext *encoder = avcodec_alloc_context3(codec);
  encoder->sample_rate = 48000;
  encoder->sample_fmt = AV_SAMPLE_FMT_FLTP;
  encoder->bit_rate = 128000;
  av_channel_layout_default(&encoder->ch_layout, 2);
  if (avcodec_open2(encoder, codec, NULL) < 0) return 1;
  AVFrame *frame = av_frame_alloc();
  frame->nb_samples = encoder->frame_size;
  frame->format = encoder->sample_fmt;
  frame->sample_rate = encoder->sample_rate;
  av_channel_layout_copy(&frame->ch_layout, &encoder->ch_layout);
  if (av_frame_get_buffer(frame, 0) < 0) return 1;
  AVPacket *packet = av_packet_alloc();
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (long number = 0; number < (long)seconds * 48000 / 1024; number++) {
    if (av_frame_make_writable(frame) < 0) return 1;
    for (int index = 0; index < 1024; index++) {
      const float value = 0.125f * sinf((float)((number * 1024 + index) % 48) * 0.13089969f);
      ((float *)frame->data[0])[index] = value;
      ((float *)frame->data[1])[index] = value;
    }
    frame->pts = number * 1024;
    if (avcodec_send_frame(encoder, frame) < 0) return 1;
    while (avcodec_receive_packet(encoder, packet) == 0) av_packet_unref(packet);
    next.tv_nsec += 21333333;
    if (next.tv_nsec >= 1000000000) {
      next.tv_nsec -= 1000000000;
      next.tv_sec++;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
  return 0;
}
