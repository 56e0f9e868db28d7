#pragma once

/// @file
/// Counts the cv::Mat whose memory goes all at once.

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tensorpool {

/// At its end none of its cv::Mat may be left: what one would show is no longer its own. One that
/// is left stops the program with a line that names the lot. Any thread may add and remove.
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

    // Relaxed: a count that orders nothing; whoever ends the lot has waited for the other threads.
    void add() noexcept { living_.fetch_add(1, std::memory_order_relaxed); }
    void remove() noexcept { living_.fetch_sub(1, std::memory_order_relaxed); }
    std::size_t living() const noexcept { return living_.load(std::memory_order_relaxed); }

private:
    std::string name_;
    std::atomic<std::size_t> living_ = 0;
};

}  // namespace tensorpool
