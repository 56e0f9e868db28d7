#pragma once

#include <latch>

namespace tensorpool::testing {

/// Holds what a thread writes into a recording's file: it waits in the middle of its first write
/// until it is let go. The linker leads the library's calls past here (--wrap);
/// recorder_file_linux_test.cpp has the function.
class HeldWrites {
public:
    /// From here on of the calling thread.
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
