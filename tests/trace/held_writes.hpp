#pragma once

#include <latch>

namespace tensorpool::testing {

/// Holds a thread in the middle of its first write into a recording's file until `let_go`. The
/// linker redirects the library's calls (--wrap); recorder_file_linux_test.cpp defines the
/// function.
class HeldWrites {
public:
    /// Holds writes of the calling thread from now on.
    void hold_mine() { mine_ = this; }
    void wait_until_held() { held_.wait(); }
    void let_go() { let_go_.count_down(); }

    static void pass() {
        HeldWrites* const hold = mine_;
        if (hold == nullptr) return;
        mine_ = nullptr;
        hold->held_.count_down();
        hold->let_go_.wait();
    }

private:
    std::latch held_{1};
    std::latch let_go_{1};
    inline static thread_local HeldWrites* mine_ = nullptr;
};

}  // namespace tensorpool::testing
