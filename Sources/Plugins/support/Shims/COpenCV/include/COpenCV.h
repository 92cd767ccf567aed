// SPDX-License-Identifier: Apache-2.0

// OpenCV for Swift (Debian: libopencv-dev), which cannot import C++: two face detectors, as handles with plain memory in and out.
//
// Every call that can fail returns 0, or -1 with OpenCV's own words in `message` (at most `capacity` bytes with the closing zero). No C++
// exception leaves this library. Only core, imgproc and objdetect are linked; objdetect brings dnn, which runs YuNet.
#ifndef COPENCV_H
#define COPENCV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// One face as a detector gave it, in pixels of the picture it was given.
typedef struct {
    float x, y, width, height;
    // YuNet: 0...1. Cascades: how many neighbouring windows agreed.
    float score;
    // Right eye, left eye, nose tip, right and left corner of the mouth (the person's right), x and y each; zeros
    // from a cascade.
    float landmarks[10];
} fh_cv_face;

typedef struct fh_cv_cascade fh_cv_cascade;
typedef struct fh_cv_yunet fh_cv_yunet;

// "4.6.0": of the library that is loaded.
const char *fh_cv_version(void);
// Threads OpenCV may use inside a call, for the whole process.
void fh_cv_set_threads(int count);

// cv::CascadeClassifier (old and new XML files, Haar and LBP).
int fh_cv_cascade_open(const char *path, fh_cv_cascade **cascade, char *message, size_t capacity);
void fh_cv_cascade_close(fh_cv_cascade *cascade);
// cv::equalizeHist where `equalizes` is not 0, then CascadeClassifier::detectMultiScale. `gray` is left as it is. Writes at most `most` faces,
// those with the most neighbours first, and to `count` how many were found, which may be more.
int fh_cv_cascade_detect(
    fh_cv_cascade *cascade, const uint8_t *gray, int width, int height, size_t stride, double scale_step, int neighbours, int smallest,
    int equalizes, fh_cv_face *faces, int most, int *count, char *message, size_t capacity);

// cv::FaceDetectorYN.
int fh_cv_yunet_open(const char *path, float threshold, fh_cv_yunet **yunet, char *message, size_t capacity);
void fh_cv_yunet_close(fh_cv_yunet *yunet);
// FaceDetectorYN::detect on packed BGR, searched in the size `search_width` x `search_height`: a picture of another size is
// first scaled to that (cv::resize: means where it becomes smaller, linear where larger). Results are in pixels of that size.
// Writes at most `most` faces, best first, and to `count` how many were found, which may be more. Another size than in
// the call before (setInputSize) makes the network take its memory anew.
int fh_cv_yunet_detect(
    fh_cv_yunet *yunet, const uint8_t *bgr, int width, int height, size_t stride, int search_width, int search_height, fh_cv_face *faces,
    int most, int *count, char *message, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
