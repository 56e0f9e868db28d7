// Programs for OpenCV in C++ that blur pictures. The argument names one. A comment marks each line
// whose memory grows, 2.6 MiB per iteration.

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <opencv2/imgproc.hpp>

#include <tensorpool/opencv.hpp>
#include <tensorpool/timeline.hpp>

namespace {

constexpr int iterations = 60;

cv::Mat make_picture() {
    return {720, 1280, CV_8UC3, cv::Scalar(10, 20, 30)};
}

void blurs() {
    for (int i = 0; i < iterations; ++i) {
        cv::Mat blurred;
        cv::GaussianBlur(make_picture(), blurred, {15, 15}, 2);
        tensorpool::mark_timeline("frame");
    }
}

void keeps_frames() {
    std::vector<cv::Mat> frames;
    for (int i = 0; i < iterations; ++i) {
        cv::Mat blurred;
        cv::GaussianBlur(make_picture(), blurred, {15, 15}, 2);  // grows
        frames.push_back(blurred);
        tensorpool::mark_timeline("frame");
    }
}

void keeps_a_frame_for_each_size() {
    std::map<int, cv::Mat> frames;
    for (int i = 0; i < iterations; ++i) {
        cv::Mat blurred;
        cv::GaussianBlur(make_picture(), blurred, {15, 15}, 2);
        cv::resize(blurred, frames[i], {1280 + i, 720});  // grows
        tensorpool::mark_timeline("frame");
    }
}

}  // namespace

int main(int count, char** arguments) {
    static const std::map<std::string, void (*)()> programs = {
        {"blurs", blurs},
        {"keeps_frames", keeps_frames},
        {"keeps_a_frame_for_each_size", keeps_a_frame_for_each_size},
    };
    const auto program = programs.find(count == 2 ? arguments[1] : "");
    if (program == programs.end()) return EXIT_FAILURE;
    cv::setNumThreads(1);
    cv::Mat::setDefaultAllocator(&tensorpool::global_mat_allocator());
    program->second();
    return EXIT_SUCCESS;
}
