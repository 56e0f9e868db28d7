// Static cv::Mat over the global pool, made before main and in it, in use until the program has
// ended. Exit code 0 and "all given back" when each was as it was left and the pool has it again.

#include <cstdio>
#include <cstdlib>

#include <opencv2/core.hpp>

#include <tensorpool/opencv.hpp>

namespace {

/// Made first, so it goes last.
struct Last {
    ~Last() {
        if (tensorpool::get_global_memory_pool().get_total_allocated() != 0) std::_Exit(1);
        std::puts("all given back");
        std::fflush(stdout);
    }
};

struct Holder {
    cv::Mat mat = cv::Mat(300, 200, CV_32F, cv::Scalar(7));

    ~Holder() {
        if (!tensorpool::get_global_memory_pool().owns(mat.data)) std::_Exit(2);
        if (cv::sum(mat.clone())[0] != 7.0 * 300 * 200) std::_Exit(3);
    }
};

const Last last;
const bool is_default = (cv::Mat::setDefaultAllocator(&tensorpool::global_mat_allocator()), true);
const Holder made_before_main;

}  // namespace

int main() {
    static const Holder made_in_main;
    return is_default ? EXIT_SUCCESS : EXIT_FAILURE;
}
