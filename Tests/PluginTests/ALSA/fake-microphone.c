// SPDX-License-Identifier: Apache-2.0

// A microphone in user space, as a plugin of alsa-lib (external PCM I/O plugin, alsa-lib's pcm_external.h).
//
// It is paced by a timer, runs `ppm` parts per million too fast, and gives a sine of `hertz` (counted in its own
// frames) of a third of full scale in 16 bits. While the file `gone` exists, it is unplugged: it cannot be opened, and
// an open one says so. While the file `still` exists, it counts no further.

#include <alsa/asoundlib.h>
#include <alsa/pcm_external.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define AMPLITUDE 10922

typedef struct {
    snd_pcm_ioplug_t io;
    int timer;
    double ppm, hertz;
    char gone[512], still[512];
    double began;
    long counted;  // frames captured since `began`; those that were read are io.appl_ptr
} microphone;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static int exists(const char *path) { return path[0] && access(path, F_OK) == 0; }

static double rate(const microphone *mic) { return mic->io.rate * (1 + mic->ppm * 1e-6); }

static void set_timer(microphone *mic, double seconds) {
    struct timespec step = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
    struct itimerspec times = {step, step};
    timerfd_settime(mic->timer, 0, &times, NULL);
}

static int start(snd_pcm_ioplug_t *io) {
    microphone *mic = io->private_data;
    mic->began = now();
    mic->counted = 0;
    set_timer(mic, io->period_size / rate(mic));
    return 0;
}

static int stop(snd_pcm_ioplug_t *io) {
    set_timer(io->private_data, 0);
    return 0;
}

static snd_pcm_sframes_t pointer(snd_pcm_ioplug_t *io) {
    microphone *mic = io->private_data;
    if (exists(mic->gone)) {
        // A negative answer would become an overrun.
        snd_pcm_ioplug_set_state(io, SND_PCM_STATE_DISCONNECTED);
        return mic->counted;
    }
    if (!exists(mic->still)) mic->counted = (long)((now() - mic->began) * rate(mic));
    // Nobody else notices an overrun.
    if (mic->counted - (long)io->appl_ptr > (long)io->buffer_size) return -EPIPE;
    return mic->counted;
}

static snd_pcm_sframes_t transfer(
    snd_pcm_ioplug_t *io, const snd_pcm_channel_area_t *areas, snd_pcm_uframes_t offset, snd_pcm_uframes_t count) {
    microphone *mic = io->private_data;
    for (unsigned channel = 0; channel < io->channels; channel++) {
        const snd_pcm_channel_area_t *area = &areas[channel];
        char *target = (char *)area->addr + (area->first + offset * area->step) / 8;
        for (snd_pcm_uframes_t index = 0; index < count; index++) {
            double phase = 2 * M_PI * mic->hertz * (io->appl_ptr + index) / io->rate;
            *(short *)(target + index * area->step / 8) = (short)lrint(AMPLITUDE * sin(phase));
        }
    }
    return count;
}

static int prepare(snd_pcm_ioplug_t *io) {
    microphone *mic = io->private_data;
    mic->counted = 0;
    mic->began = now();
    return 0;
}

static int finish(snd_pcm_ioplug_t *io) {
    microphone *mic = io->private_data;
    close(mic->timer);
    free(mic);
    return 0;
}

static int revents(snd_pcm_ioplug_t *io, struct pollfd *polled, unsigned count, unsigned short *events) {
    microphone *mic = io->private_data;
    unsigned long long expirations;
    *events = 0;
    if (count > 0 && polled->revents & POLLIN) {
        if (read(mic->timer, &expirations, sizeof expirations) > 0 && !exists(mic->still)) *events = POLLIN;
    }
    if (exists(mic->gone)) {
        snd_pcm_ioplug_set_state(io, SND_PCM_STATE_DISCONNECTED);
        *events = POLLERR | POLLHUP;
    }
    return 0;
}

static int delay(snd_pcm_ioplug_t *io, snd_pcm_sframes_t *frames) {
    microphone *mic = io->private_data;
    *frames = mic->counted - (long)io->appl_ptr;
    return 0;
}

static const snd_pcm_ioplug_callback_t callbacks = {
    .start = start,
    .stop = stop,
    .pointer = pointer,
    .transfer = transfer,
    .prepare = prepare,
    .close = finish,
    .poll_revents = revents,
    .delay = delay,
};

static void read_option(microphone *mic, snd_config_t *node) {
    const char *name, *text;
    if (snd_config_get_id(node, &name) < 0) return;
    if (!strcmp(name, "ppm")) snd_config_get_ireal(node, &mic->ppm);
    if (!strcmp(name, "hertz")) snd_config_get_ireal(node, &mic->hertz);
    if (!strcmp(name, "gone") && snd_config_get_string(node, &text) >= 0)
        snprintf(mic->gone, sizeof mic->gone, "%s", text);
    if (!strcmp(name, "still") && snd_config_get_string(node, &text) >= 0)
        snprintf(mic->still, sizeof mic->still, "%s", text);
}

SND_PCM_PLUGIN_DEFINE_FUNC(fakemic) {
    snd_config_iterator_t iterator, next;
    if (stream != SND_PCM_STREAM_CAPTURE) return -EINVAL;
    microphone *mic = calloc(1, sizeof *mic);
    if (!mic) return -ENOMEM;
    mic->hertz = 440;
    snd_config_for_each(iterator, next, conf) read_option(mic, snd_config_iterator_entry(iterator));
    if (exists(mic->gone)) {
        free(mic);
        return -ENODEV;
    }
    mic->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    mic->io.version = SND_PCM_IOPLUG_VERSION;
    mic->io.name = "Fake microphone";
    mic->io.callback = &callbacks;
    mic->io.private_data = mic;
    mic->io.poll_fd = mic->timer;
    mic->io.poll_events = POLLIN;
    mic->io.flags = SND_PCM_IOPLUG_FLAG_MONOTONIC | SND_PCM_IOPLUG_FLAG_BOUNDARY_WA;
    int code = snd_pcm_ioplug_create(&mic->io, name, stream, mode);
    if (code < 0) {
        close(mic->timer);
        free(mic);
        return code;
    }
    const unsigned formats[] = {SND_PCM_FORMAT_S16};
    // What converts before a reader (`plug`) reads by mmap.
    const unsigned accesses[] = {SND_PCM_ACCESS_RW_INTERLEAVED, SND_PCM_ACCESS_MMAP_INTERLEAVED};
    snd_pcm_ioplug_set_param_list(&mic->io, SND_PCM_IOPLUG_HW_FORMAT, 1, formats);
    snd_pcm_ioplug_set_param_list(&mic->io, SND_PCM_IOPLUG_HW_ACCESS, 2, accesses);
    snd_pcm_ioplug_set_param_minmax(&mic->io, SND_PCM_IOPLUG_HW_CHANNELS, 1, 2);
    snd_pcm_ioplug_set_param_minmax(&mic->io, SND_PCM_IOPLUG_HW_RATE, 8000, 96000);
    snd_pcm_ioplug_set_param_minmax(&mic->io, SND_PCM_IOPLUG_HW_PERIOD_BYTES, 64, 65536);
    snd_pcm_ioplug_set_param_minmax(&mic->io, SND_PCM_IOPLUG_HW_PERIODS, 2, 256);
    *pcmp = mic->io.pcm;
    return 0;
}

SND_PCM_PLUGIN_SYMBOL(fakemic);
