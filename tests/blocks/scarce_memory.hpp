#pragma once

#include <atomic>

namespace tensorpool::testing {

/// While this object exists, the system makes memory writable `granted` more times and then
/// refuses. scarce_memory_test.cpp replaces the C library's `mprotect` with one that consults this
/// class.
class ScarceMemory {
public:
    explicit ScarceMemory(int granted = 0) { left_ = granted; }
    ~ScarceMemory() { left_ = plenty; }
    ScarceMemory(const ScarceMemory&) = delete;
    ScarceMemory& operator=(const ScarceMemory&) = delete;

    static bool grants() {
        int left = left_;
        while (left != plenty && left > 0 && !left_.compare_exchange_weak(left, left - 1)) {
        }
        return left != 0;
    }

private:
    static constexpr int plenty = -1;
    inline static std::atomic<int> left_ = plenty;
};

}  // namespace tensorpool::testing
