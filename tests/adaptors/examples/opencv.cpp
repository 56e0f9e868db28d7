// Makes every cv::Mat of a program come from the pool, by one line at its beginning.

#include <cstdio>

#include <opencv2/imgproc.hpp>

#include <tensorpool/opencv.hpp>

int main() {
    cv::Mat::setDefaultAllocator(&tensorpool::global_mat_allocator());

    cv::Mat picture(480, 640, CV_8UC3, cv::Scalar(10, 20, 30));
    cv::Mat blurred;
    cv::GaussianBlur(picture, blurred, {}, 2.0);

    const bool pooled = tensorpool::get_global_memory_pool().owns(blurred.data);
    std::printf("%d x %d pixels, %s\n", blurred.cols, blurred.rows,
                pooled ? "from the pool" : "not from the pool");
    return pooled ? 0 : 1;
}
