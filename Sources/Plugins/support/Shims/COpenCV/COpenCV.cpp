// SPDX-License-Identifier: Apache-2.0

#include "COpenCV.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <opencv2/core.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/objdetect.hpp>
#include <opencv2/objdetect/face.hpp>
#include <string>
#include <vector>

struct fh_cv_cascade {
    cv::CascadeClassifier classifier;
    // Kept from call to call: their memory is used again.
    cv::Mat equalized;
    std::vector<cv::Rect> boxes;
    std::vector<int> counts;
    std::vector<int> order;
};

struct fh_cv_yunet {
    cv::Ptr<cv::FaceDetectorYN> detector;
    cv::Size size;
    // Kept from call to call: its memory is used again.
    cv::Mat resized;
    cv::Mat rows;
};

namespace {

// OpenCV would print every error before it throws it, and dnn a dozen lines for a model that does not fit.
int keep_quiet(int, const char *, const char *, const char *, int, void *) { return 0; }

void silence() {
    cv::redirectError(keep_quiet);
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
}

// The one place where C++ exceptions end.
template <typename Body>
int guarded(char *message, size_t capacity, Body body) {
    static const bool is_quiet = (silence(), true);
    (void)is_quiet;
    try {
        body();
        return 0;
    } catch (const cv::Exception &error) {
        std::snprintf(message, capacity, "%s", error.err.c_str());
        return -1;
    } catch (const std::exception &error) {
        std::snprintf(message, capacity, "%s", error.what());
        return -1;
    } catch (...) {
        std::snprintf(message, capacity, "%s", "unknown exception");
        return -1;
    }
}

cv::Mat view(const uint8_t *pixels, int type, int width, int height, size_t stride) {
    return cv::Mat(height, width, type, const_cast<uint8_t *>(pixels), stride);
}

}  // namespace

const char *fh_cv_version(void) {
    static const std::string version = cv::getVersionString();
    return version.c_str();
}

void fh_cv_set_threads(int count) { cv::setNumThreads(count); }

int fh_cv_cascade_open(const char *path, fh_cv_cascade **cascade, char *message, size_t capacity) {
    return guarded(message, capacity, [&] {
        auto made = std::make_unique<fh_cv_cascade>();
        if (!made->classifier.load(path) || made->classifier.empty()) CV_Error(cv::Error::StsParseError, "no cascade in this file");
        *cascade = made.release();
    });
}

void fh_cv_cascade_close(fh_cv_cascade *cascade) { delete cascade; }

int fh_cv_cascade_detect(
    fh_cv_cascade *cascade, const uint8_t *gray, int width, int height, size_t stride, double scale_step, int neighbours, int smallest,
    int equalizes, fh_cv_face *faces, int most, int *count, char *message, size_t capacity) {
    *count = 0;
    return guarded(message, capacity, [&] {
        cv::Mat picture = view(gray, CV_8UC1, width, height, stride);
        if (equalizes) cv::equalizeHist(picture, cascade->equalized);
        cascade->classifier.detectMultiScale(
            equalizes ? cascade->equalized : picture, cascade->boxes, cascade->counts, scale_step, neighbours, 0,
            cv::Size(smallest, smallest));
        auto &order = cascade->order;
        order.resize(cascade->boxes.size());
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](int a, int b) { return cascade->counts[a] > cascade->counts[b]; });
        *count = static_cast<int>(order.size());
        for (int index = 0; index < std::min(most, *count); ++index) {
            const cv::Rect &box = cascade->boxes[order[index]];
            faces[index] = fh_cv_face{
                float(box.x), float(box.y), float(box.width), float(box.height), float(cascade->counts[order[index]]), {}};
        }
    });
}

int fh_cv_yunet_open(const char *path, float threshold, fh_cv_yunet **yunet, char *message, size_t capacity) {
    return guarded(message, capacity, [&] {
        auto made = std::make_unique<fh_cv_yunet>();
        made->size = cv::Size(320, 320);
        // Boxes that overlap by more than 0.3 are one face. Some ten candidates stand for one face, and all of a crowd's
        // must go into that comparison: what is left out there is not found.
        made->detector = cv::FaceDetectorYN::create(path, "", made->size, threshold, 0.3f, 20000);
        if (!made->detector) CV_Error(cv::Error::StsError, "no detector was made");
        *yunet = made.release();
    });
}

void fh_cv_yunet_close(fh_cv_yunet *yunet) { delete yunet; }

int fh_cv_yunet_detect(
    fh_cv_yunet *yunet, const uint8_t *bgr, int width, int height, size_t stride, int search_width, int search_height, fh_cv_face *faces,
    int most, int *count, char *message, size_t capacity) {
    *count = 0;
    return guarded(message, capacity, [&] {
        cv::Mat picture = view(bgr, CV_8UC3, width, height, stride);
        const cv::Size size(search_width, search_height);
        if (size != yunet->size) {
            yunet->detector->setInputSize(size);
            yunet->size = size;
        }
        if (picture.size() != yunet->size) {
            cv::resize(picture, yunet->resized, yunet->size, 0, 0, yunet->size.width < width ? cv::INTER_AREA : cv::INTER_LINEAR);
            picture = yunet->resized;
        }
        yunet->detector->detect(picture, yunet->rows);
        *count = yunet->rows.rows;
        for (int index = 0; index < std::min(most, *count); ++index) {
            // x, y, width, height, ten coordinates, score.
            const float *row = yunet->rows.ptr<float>(index);
            fh_cv_face &face = faces[index];
            face = fh_cv_face{row[0], row[1], row[2], row[3], row[14], {}};
            std::copy(row + 4, row + 14, face.landmarks);
        }
    });
}
