// SPDX-License-Identifier: Apache-2.0

// A HID sensor hub in user space, through /dev/uhid: the kernel's own drivers make the IIO devices `accel_3d`, `gyro_3d`
// and `dev_rotation` of it. It is pulled when this program ends.
//
// What it measures is a function of the monotonic clock, which check.py knows too; p is 2 pi t / 4 s:
//   rotation rate  sin p, 0.5 cos p, 0.25       rad/s
//   acceleration   2 sin p, -3 cos p, 9.80665   m/s^2
//   attitude       turned about z by 0.5 sin p  rad
//
// HID Usage Tables 1.4, chapter 22 (Sensors); Device Class Definition for HID 1.11, 6.2.2; Documentation/hid/uhid.rst.

#define _GNU_SOURCE  // ppoll
#include <errno.h>
#include <fcntl.h>
#include <linux/uhid.h>
#include <math.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ACCELEROMETER = 1, GYROSCOPE, ORIENTATION, SENSORS = 3 };  // report identifiers

// What the kernel reads and writes of a sensor, in the order of its report descriptor.
struct feature {
    uint8_t connection, reporting, power;  // indices into their lists
    uint32_t interval;                     // ms
    uint16_t sensitivity;
} __attribute__((packed));

static struct feature features[SENSORS + 1];
static double due[SENSORS + 1];  // when a sensor gives its next report
static uint8_t descriptor[HID_MAX_DESCRIPTOR_SIZE];
static int descriptor_bytes;
static int hub;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

// MARK: Report descriptor

// Short items, of 1, 2 or 4 bytes.
enum {
    USAGE_PAGE = 0x04, USAGE = 0x08, COLLECTION = 0xA0, END_COLLECTION = 0xC0, INPUT = 0x80, FEATURE = 0xB0,
    LOWEST = 0x14, HIGHEST = 0x24, EXPONENT = 0x54, SIZE = 0x74, IDENTIFIER = 0x84, COUNT = 0x94
};
enum { PHYSICAL = 0, LOGICAL = 2, VARIABLE = 2 };

static void item(int tag, int32_t value) {
    int size = value >= -128 && value <= 127 ? 1 : value >= -32768 && value <= 32767 ? 2 : 4;
    descriptor[descriptor_bytes++] = tag | (size == 4 ? 3 : size);
    memcpy(descriptor + descriptor_bytes, &value, size);
    descriptor_bytes += size;
}

static void end_collection(void) { descriptor[descriptor_bytes++] = END_COLLECTION; }

// A number of `bits` bits, `count` times.
static void value(int kind, int usage, int32_t lowest, int32_t highest, int bits, int count, int exponent) {
    item(USAGE, usage);
    item(LOWEST, lowest);
    item(HIGHEST, highest);
    item(SIZE, bits);
    item(COUNT, count);
    item(EXPONENT, exponent & 15);
    item(kind, VARIABLE);
}

// One of the `count` usages from `first` on, by its index.
static void choice(int kind, int usage, int first, int count) {
    item(USAGE, usage);
    item(LOWEST, 0);
    item(HIGHEST, count - 1);
    item(SIZE, 8);
    item(COUNT, 1);
    item(COLLECTION, LOGICAL);
    for (int index = 0; index < count; index++) item(USAGE, first + index);
    item(kind, 0);
    end_collection();
}

static void begin_sensor(int identifier, int usage, int measured) {
    item(USAGE, usage);
    item(COLLECTION, PHYSICAL);
    item(IDENTIFIER, identifier);
    choice(FEATURE, 0x0309, 0x0830, 3);  // how it is connected
    choice(FEATURE, 0x0316, 0x0840, 6);  // when it reports: never, at every event, ...
    choice(FEATURE, 0x0319, 0x0850, 6);  // power: undefined, full, ...
    value(FEATURE, 0x030E, 0, INT32_MAX, 32, 1, 0);
    value(FEATURE, 0x1000 | measured, 0, INT16_MAX, 16, 1, -2);
    choice(INPUT, 0x0201, 0x0800, 7);  // state
    choice(INPUT, 0x0202, 0x0810, 6);  // event
}

// Three axes, in thousandths of the unit that the usage has: g, degrees per second.
static void axes(int first) {
    for (int axis = 0; axis < 3; axis++) value(INPUT, first + axis, INT32_MIN, INT32_MAX, 32, 1, -3);
}

static void describe(void) {
    item(USAGE_PAGE, 0x20);
    item(USAGE, 0x01);
    item(COLLECTION, PHYSICAL);
    begin_sensor(ACCELEROMETER, 0x73, 0x0452);
    axes(0x0453);
    end_collection();
    begin_sensor(GYROSCOPE, 0x76, 0x0456);
    axes(0x0457);
    end_collection();
    begin_sensor(ORIENTATION, 0x8A, 0x0483);
    value(INPUT, 0x0483, -INT16_MAX, INT16_MAX, 16, 4, 0);
    end_collection();
    end_collection();
}

// MARK: Reports

// A sensor's input report of this moment; returns its bytes.
static int measure(int identifier, uint8_t *report) {
    const double time = now(), p = 2 * M_PI * time / 4, degrees = 180 / M_PI, g = 9.80665;
    report[0] = identifier;
    report[1] = 2;  // ready
    report[2] = 3;  // data updated
    if (identifier == ORIENTATION) {
        const double half = 0.25 * sin(p);
        const int16_t parts[4] = {0, 0, lrint(INT16_MAX * sin(half)), lrint(INT16_MAX * cos(half))};
        memcpy(report + 3, parts, sizeof parts);
        return 3 + sizeof parts;
    }
    const double rate[3] = {degrees * sin(p), degrees * 0.5 * cos(p), degrees * 0.25};
    const double acceleration[3] = {2 / g * sin(p), -3 / g * cos(p), 1};
    int32_t parts[3];
    for (int axis = 0; axis < 3; axis++)
        parts[axis] = lrint(1000 * (identifier == GYROSCOPE ? rate : acceleration)[axis]);
    memcpy(report + 3, parts, sizeof parts);
    return 3 + sizeof parts;
}

static void put(struct uhid_event *event) {
    if (write(hub, event, sizeof *event) < 0) {
        perror("/dev/uhid");
        exit(1);
    }
}

// The kernel waits for each answer.
static void answer(const struct uhid_event *asked) {
    struct uhid_event event = {0};
    if (asked->type == UHID_GET_REPORT) {
        const int identifier = asked->u.get_report.rnum;
        struct uhid_get_report_reply_req *reply = &event.u.get_report_reply;
        event.type = UHID_GET_REPORT_REPLY;
        reply->id = asked->u.get_report.id;
        if (identifier < 1 || identifier > SENSORS) {
            reply->err = EIO;
        } else if (asked->u.get_report.rtype == UHID_FEATURE_REPORT) {
            reply->data[0] = identifier;
            memcpy(reply->data + 1, &features[identifier], sizeof *features);
            reply->size = 1 + sizeof *features;
        } else {
            reply->size = measure(identifier, reply->data);
        }
        put(&event);
    } else if (asked->type == UHID_SET_REPORT) {
        const int identifier = asked->u.set_report.rnum;
        event.type = UHID_SET_REPORT_REPLY;
        event.u.set_report_reply.id = asked->u.set_report.id;
        if (identifier < 1 || identifier > SENSORS || asked->u.set_report.size < 1 + sizeof *features) {
            event.u.set_report_reply.err = EIO;
        } else {
            memcpy(&features[identifier], asked->u.set_report.data + 1, sizeof *features);
            due[identifier] = now();
            fprintf(stderr, "[%.3f] sensor %d: reporting %d, power %d, %u ms\n", now(), identifier,
                features[identifier].reporting, features[identifier].power, features[identifier].interval);
        }
        put(&event);
    }
}

// Linux 6.1 counts these lists from 1: it writes 2 for "full" and "at every event", 6 and 1 at the end.
static int is_on(int identifier) { return features[identifier].reporting == 2 && features[identifier].power == 2; }

int main(void) {
    describe();
    for (int sensor = 1; sensor <= SENSORS; sensor++)
        features[sensor] = (struct feature){.connection = 1, .interval = 10, .sensitivity = 1};
    hub = open("/dev/uhid", O_RDWR | O_CLOEXEC);
    if (hub < 0) {
        perror("/dev/uhid");
        return 1;
    }
    struct uhid_event event = {.type = UHID_CREATE2};
    struct uhid_create2_req *create = &event.u.create2;
    snprintf((char *)create->name, sizeof create->name, "framehost's sensor hub");
    create->rd_size = descriptor_bytes;
    memcpy(create->rd_data, descriptor, descriptor_bytes);
    create->bus = 3;
    create->vendor = 0x1234;
    create->product = 0x5678;
    put(&event);
    for (;;) {
        double next = now() + 1;
        for (int sensor = 1; sensor <= SENSORS; sensor++) {
            if (is_on(sensor)) next = fmin(next, due[sensor]);
        }
        const double left = fmax(next - now(), 0);
        const struct timespec wait = {(time_t)left, (long)(fmod(left, 1) * 1e9)};
        struct pollfd polled = {.fd = hub, .events = POLLIN};
        if (ppoll(&polled, 1, &wait, NULL) > 0) {
            if (read(hub, &event, sizeof event) > 0) answer(&event);
        }
        for (int sensor = 1; sensor <= SENSORS; sensor++) {
            if (!is_on(sensor) || due[sensor] > now()) continue;
            const double interval = features[sensor].interval / 1000.0;
            due[sensor] += interval;
            // Where this machine stood still, what was due meanwhile is left out.
            if (due[sensor] < now()) due[sensor] = now() + interval;
            memset(&event, 0, sizeof event);
            event.type = UHID_INPUT2;
            event.u.input2.size = measure(sensor, event.u.input2.data);
            put(&event);
        }
    }
}
