// SPDX-License-Identifier: Apache-2.0

// V4L2 and libv4l2 for Swift (Debian: libv4l-dev): what the importer cannot do.
#ifndef CV4L2_H
#define CV4L2_H

#include <errno.h>
#include <fcntl.h>
#include <libv4l2.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

// Request numbers: macros made of macros and sizes.
static const unsigned long fh_vidioc_querycap = VIDIOC_QUERYCAP;
static const unsigned long fh_vidioc_enum_fmt = VIDIOC_ENUM_FMT;
static const unsigned long fh_vidioc_enum_framesizes = VIDIOC_ENUM_FRAMESIZES;
static const unsigned long fh_vidioc_enum_frameintervals = VIDIOC_ENUM_FRAMEINTERVALS;
static const unsigned long fh_vidioc_try_fmt = VIDIOC_TRY_FMT;
static const unsigned long fh_vidioc_s_fmt = VIDIOC_S_FMT;
static const unsigned long fh_vidioc_g_parm = VIDIOC_G_PARM;
static const unsigned long fh_vidioc_s_parm = VIDIOC_S_PARM;
static const unsigned long fh_vidioc_reqbufs = VIDIOC_REQBUFS;
static const unsigned long fh_vidioc_querybuf = VIDIOC_QUERYBUF;
static const unsigned long fh_vidioc_qbuf = VIDIOC_QBUF;
static const unsigned long fh_vidioc_dqbuf = VIDIOC_DQBUF;
static const unsigned long fh_vidioc_streamon = VIDIOC_STREAMON;
static const unsigned long fh_vidioc_streamoff = VIDIOC_STREAMOFF;
static const unsigned long fh_vidioc_queryctrl = VIDIOC_QUERYCTRL;
static const unsigned long fh_vidioc_querymenu = VIDIOC_QUERYMENU;
static const unsigned long fh_vidioc_g_ctrl = VIDIOC_G_CTRL;
static const unsigned long fh_vidioc_s_ctrl = VIDIOC_S_CTRL;

// A macro made of macros; a button, so that it has no value (V4L2, "Codec Control Reference").
static const unsigned int fh_force_keyframe = V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME;

// Variadic.
static inline int fh_v4l2_ioctl(int device, unsigned long request, void *argument) {
    return v4l2_ioctl(device, request, argument);
}

// open(2) is variadic. Without blocking: a dequeue that finds nothing says so.
static inline int fh_open_device(const char *path) { return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC); }

// A global variable of C, which Swift takes for shared state. Without a file the library writes to standard error.
static inline void fh_v4l2_log_to(FILE *file) { v4l2_log_file = file; }

// MAP_FAILED is a cast; NULL stands for it.
static inline void *fh_v4l2_map(int device, size_t bytes, off_t offset) {
    void *base = v4l2_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, device, offset);
    return base == MAP_FAILED ? NULL : base;
}

// Anonymous unions, to whose members the importer gives no stable names.
static inline struct v4l2_frmsize_discrete fh_size(const struct v4l2_frmsizeenum *value) { return value->discrete; }
static inline struct v4l2_frmsize_stepwise fh_sizes(const struct v4l2_frmsizeenum *value) { return value->stepwise; }
static inline struct v4l2_fract fh_interval(const struct v4l2_frmivalenum *value) { return value->discrete; }
static inline struct v4l2_frmival_stepwise fh_intervals(const struct v4l2_frmivalenum *value) { return value->stepwise; }
static inline const char *fh_menu_name(const struct v4l2_querymenu *value) { return (const char *)value->name; }
static inline long long fh_menu_value(const struct v4l2_querymenu *value) { return value->value; }

#endif
