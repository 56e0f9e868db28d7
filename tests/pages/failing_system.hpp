#pragma once

#include <atomic>
#include <functional>

namespace tensorpool::testing {

/// System calls that can fail, by purpose.
enum class SystemCall : int {
    none,
    commit_pages,    // memory of callers
    commit_records,  // all other memory: records and parts of the page map
    decommit_pages,
    decommit_map,  // parts of the page map
    move_pages,
    move_second_half,  // after the first half of the pages was moved
};

/// While an object of this class exists, calls of one kind fail: `count` of them from number
/// `first` on, counted from 0. failing_system_test.cpp replaces functions of the C library by ones
/// that consult this class.
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

    /// The number of calls of the kind so far, failed or not.
    static unsigned seen() { return seen_; }
    static bool fails(SystemCall call) {
        if (call != chosen_) return false;
        const unsigned number = seen_++;
        return number >= first_ && number - first_ < count_;
    }

    /// Whether an object exists. Not a std::atomic, because it is read before a sanitizer is
    /// initialized.
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

/// The page size that the system claims to have, in bytes; 0 for the real one. Only for child
/// processes that end soon.
inline int claimed_page_bytes = 0;

}  // namespace tensorpool::testing
