#pragma once

/// @file
/// Counts the cv::Mat whose memory ends at the same time.

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tensorpool {

/// When it is destroyed, none of its cv::Mat may be left, because their memory is reused. If one is
/// left, the program stops with a message that names the lot. Any thread may call add and remove.
class MatLot {
public:
    explicit MatLot(std::string_view name) : name_(name) {}
    ~MatLot() {
        if (living() == 0) return;
        std::fprintf(stderr,
                     "tensorpool: the memory of %zu cv::Mat ends with '%s'; expected none\n",
                     living(), name_.c_str());
        std::abort();
    }
    MatLot(const MatLot&) = delete;
    MatLot& operator=(const MatLot&) = delete;

    // Relaxed: the count orders nothing. The thread that destroys the lot has waited for the
    // others.
    void add() noexcept { living_.fetch_add(1, std::memory_order_relaxed); }
    void remove() noexcept { living_.fetch_sub(1, std::memory_order_relaxed); }
    std::size_t living() const noexcept { return living_.load(std::memory_order_relaxed); }

private:
    std::string name_;
    std::atomic<std::size_t> living_ = 0;
};

}  // namespace tensorpool
