// SPDX-License-Identifier: Apache-2.0

// Reads a file's H.264 with start codes and does nothing with it, for tests that count allocations: what libavformat and its bitstream filter
// take for each packet by themselves. cc read-units.c -lavformat -lavcodec -lavutil
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>

int main(int argc, char **argv) {
    AVFormatContext *file = NULL;
    AVBSFContext *filter = NULL;
    AVPacket *packet = av_packet_alloc();
    if (argc < 2 || !packet || avformat_open_input(&file, argv[1], NULL, NULL) < 0 || avformat_find_stream_info(file, NULL) < 0) return 1;
    if (av_bsf_alloc(av_bsf_get_by_name("h264_mp4toannexb"), &filter) < 0) return 1;
    if (avcodec_parameters_copy(filter->par_in, file->streams[0]->codecpar) < 0 || av_bsf_init(filter) < 0) return 1;
    int count = 0;
    while (av_read_frame(file, packet) >= 0) {
        if (av_bsf_send_packet(filter, packet) < 0) return 1;
        while (av_bsf_receive_packet(filter, packet) == 0) {
            count++;
            av_packet_unref(packet);
        }
    }
    printf("%d\n", count);
    return 0;
}
