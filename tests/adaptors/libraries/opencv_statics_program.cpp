// Static cv::Mat objects of the global pool, made before main and in it, which are in use until the
// program ends. Prints "all given back" and exits with 0 if each kept its content and was freed.

#include <cstdio>
#include <cstdlib>

#include <opencv2/core.hpp>

#include <tensorpool/opencv.hpp>

namespace {

/// Made first, so destroyed last.
struct Last {
    ~Last() {
        if (tensorpool::get_global_memory_pool().get_total_allocated() != 0) std::_Exit(1);
        std::puts("all given back");
        std::fflush(stdout);
    }
};

struct Holder {
    cv::Mat mat;

    Holder() = default;
    explicit Holder(float value) { fill(value); }
    ~Holder() {
        if (!tensorpool::get_global_memory_pool().owns(mat.data)) std::_Exit(2);
        if (cv::norm(mat.clone(), cv::NORM_INF) != 7.0) std::_Exit(3);
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

    void fill(float value) { mat = cv::Mat(300, 200, CV_32F, cv::Scalar(value)); }
};

const Last last;
Holder made_before_the_allocator;  // so it is destroyed after the allocator would be
const bool is_default = (cv::Mat::setDefaultAllocator(&tensorpool::global_mat_allocator()), true);
const Holder made_before_main(7);

}  // namespace

int main() {
    static const Holder made_in_main(7);
    made_before_the_allocator.fill(7);
    return is_default ? EXIT_SUCCESS : EXIT_FAILURE;
}
