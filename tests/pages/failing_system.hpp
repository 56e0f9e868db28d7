#pragma once

#include <atomic>
#include <functional>

namespace tensorpool::testing {

/// System calls that can fail, by what they are for.
enum class SystemCall : int {
    none,
    commit_pages,    // memory of callers
    commit_records,  // all other: records, and parts of the page map
    decommit_pages,
    decommit_map,  // parts of the page map
    move_pages,
    move_second_half,  // once the first half of the pages has moved
};

/// While it lives, calls of one kind fail: `count` of them from number `first` on, counted from 0.
/// failing_system_test.cpp puts the functions that ask it in place of the C library's.
class Failing {
public:
    explicit Failing(SystemCall call, unsigned first = 0, unsigned count = ~0U) {
        first_ = first;
        count_ = count;
        seen_ = 0;
        chosen_ = call;
        __atomic_store_n(&is_alive, true, __ATOMIC_RELEASE);
    }
    ~Failing() { __atomic_store_n(&is_alive, false, __ATOMIC_RELEASE); }
    Failing(const Failing&) = delete;
    Failing& operator=(const Failing&) = delete;

    /// Calls of the kind so far, failed or not.
    static unsigned seen() { return seen_; }
    static bool fails(SystemCall call) {
        if (call != chosen_) return false;
        const unsigned number = seen_++;
        return number >= first_ && number - first_ < count_;
    }

    /// Whether there is one. Plain, as the word below: read before a sanitizer is ready to watch.
    inline static bool is_alive = false;

private:
    inline static std::atomic<SystemCall> chosen_ = SystemCall::none;
    inline static std::atomic<unsigned> first_ = 0;
    inline static std::atomic<unsigned> count_ = 0;
    inline static std::atomic<unsigned> seen_ = 0;
};

/// Called once, by the next call that gets pages from the system.
inline std::function<void()> before_populating;

/// Called once, by the next call that ends a mapping, before it does.
inline std::function<void()> before_unmapping;

/// What the system says its pages are, where a test says otherwise: 0, or bytes. Only for a child
/// process that ends soon.
inline int claimed_page_bytes = 0;

}  // namespace tensorpool::testing
