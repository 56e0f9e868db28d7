#pragma once

#include <array>
#include <atomic>
#include <utility>

#include "base/random_distance.hpp"

namespace tensorpool::watch {

/// The most watchers that there can be (kinds/watcher.hpp).
inline constexpr unsigned max_watchers = 4;

/// The bytes of requests through one cache until a watcher looks at one.
struct Distance {
    /// Leaves room for the bytes of any request.
    static constexpr std::int64_t never = INT64_MAX / 2;

    std::int64_t left = 0;
    /// The mean of the random distance, which determines what the request at its end stands for.
    /// If it is 0, the watcher only chooses a new distance there.
    double mean = 0;
};

/// What the countdown of a cache (`ThreadCache::bytes_to_sample`) counts down to: the shortest of
/// the distances of all watchers. At first all of them have ended.
struct Countdown {
    std::array<Distance, max_watchers> distances;
    std::int64_t armed = 0;

    /// Reduces all distances by what the countdown has counted since `arm`, and returns that.
    std::int64_t settle(std::int64_t countdown) noexcept {
        const std::int64_t used = armed - countdown;
        for (Distance& distance : distances) distance.left -= used;
        armed = countdown;
        return used;
    }
    /// Returns the next countdown.
    std::int64_t arm() noexcept {
        const auto shorter = [](const Distance& a, const Distance& b) { return a.left < b.left; };
        return armed = std::ranges::min_element(distances, shorter)->left;
    }
};

inline double average(double mean, double value) noexcept {
    return (7 * mean + value) / 8;
}

/// How much of each thread's time the blocks of a watcher may take.
struct Terms {
    /// The share of the time that they take on average.
    double share = 0;
    /// What a block costs at first, in nanoseconds: a guess.
    double first_cost_ns = 0;
    /// Time that was not needed is saved, in times that one block needs. With `enough`, nothing is
    /// spared, and more than `max_saved` is not saved.
    double enough = 1;
    double max_saved = 1;
    /// The least part of the time that one block needs after which the next one follows.
    double haste = 0;
    /// Reading the thread's time takes a system call: done once for so many blocks.
    unsigned blocks_per_look = 8;
};

/// What the threads of a process know together.
struct SharedPace {
    /// In bytes a nanosecond: the highest that a thread measured, and less from look to look.
    /// Relaxed: an estimate.
    std::atomic<double> rate = 0;
};
inline constinit SharedPace the_process_pace;

inline SharedPace& process_pace() noexcept {
    return the_process_pace;
}

// Beyond it, blocks take more than the share. Only requests for blocks that are not touched come so
// fast.
inline constexpr double max_mean = 0x1p36;

inline constexpr double max_debt_ns = 1e9;

// A thread may wait, or work without pools, for hours; and free the blocks of many others.
inline constexpr double max_elapsed_ns = 1e9;

inline constexpr double kept = 0.75;

/// The pace of the watchers of one thread, over all of its caches. It measures how fast the thread
/// requests bytes and what the blocks of each watcher cost, their frees included, and draws
/// distances by which each watcher keeps to its share. What a thread frees costs this thread.
///
/// Times are those of the thread's processor, in nanoseconds since the thread began. If they go
/// back, as in the child of a fork, the pace goes on with what it knows. Until a thread has
/// measured its own rate, it takes that of other threads: most short ones end before.
class Pace {
public:
    constexpr Pace() noexcept = default;

    bool has_begun() const noexcept { return shared_ != nullptr; }
    /// `seed` should differ between threads.
    void begin(std::uint64_t seed, SharedPace& shared) noexcept {
        random_ = base::RandomDistance(seed);
        shared_ = &shared;
    }

    void pass(std::int64_t bytes) noexcept { passed_ += static_cast<double>(bytes); }
    /// Whether a thread that did not measure its rate yet has requested enough for that.
    bool lacks_rate() const noexcept {
        return !has_looked_ && passed_ >= static_cast<double>(look_after_bytes);
    }
    bool is_time_to_look(const Terms& terms) noexcept {
        return !has_looked_ || ++blocks_ % terms.blocks_per_look == 0;
    }
    /// Measures the rate, and gives all watchers the time that has passed.
    void look(std::uint64_t now) noexcept {
        const std::uint64_t before = std::exchange(looked_, now);
        const double passed = std::exchange(passed_, 0);
        has_looked_ = true;
        if (now <= before) return;
        const double elapsed = std::min(static_cast<double>(now - before), max_elapsed_ns);
        bytes_ = kept * bytes_ + passed;
        time_ = kept * time_ + elapsed;
        const double more = std::min(4 * elapsed, more_at_first_ns_);
        more_at_first_ns_ -= more;
        for (Account& account : accounts_) account.saved_ns += elapsed + more;
        const double known = shared_->rate.load(std::memory_order_relaxed);
        shared_->rate.store(std::max(bytes_ / time_, kept * known), std::memory_order_relaxed);
    }

    /// Returns whether the watcher may take a block that costs at least `cost_ns` now.
    bool may_take(unsigned watcher, const Terms& terms, double cost_ns) noexcept {
        Account& account = accounts_[watcher];
        const double time = std::max(time_of_block(account, terms), cost_ns / terms.share);
        account.wanted_ns = terms.haste * time;
        return account.saved_ns >= account.wanted_ns;
    }
    /// Counts what the allocation of a block cost, or its free.
    void count(unsigned watcher, const Terms& terms, double cost_ns) noexcept {
        Account& account = accounts_[watcher];
        account.saved_ns -= cost_ns / terms.share;
        account.cost_ns = average(cost_of(account, terms), cost_ns);
    }
    void count_free(unsigned watcher, double cost_ns) noexcept {
        Account& account = accounts_[watcher];
        if (account.share == 0) return;
        account.saved_ns -= cost_ns / account.share;
        account.free_cost_ns = average(account.free_cost_ns, cost_ns);
    }
    /// Sets the watcher's next distance. Its mean is at least `least`, in bytes.
    void set(Distance& distance, unsigned watcher, const Terms& terms, double least) noexcept {
        Account& account = accounts_[watcher];
        const double time = time_of_block(account, terms);
        account.share = terms.share;
        account.saved_ns = std::clamp(account.saved_ns, -max_debt_ns,
                                      std::max(terms.max_saved * time, account.wanted_ns));
        const double need = std::max(1 - account.saved_ns / (terms.enough * time), terms.haste);
        const double rate =
            time_ != 0 ? bytes_ / time_ : shared_->rate.load(std::memory_order_relaxed);
        distance.mean = std::max(std::min(rate * time * need, max_mean), least);
        distance.left = random_.next(distance.mean);
        // Distances have no memory: one that is cut short is as random as any other.
        if (has_looked_ || distance.left <= look_after_bytes) return;
        distance = {.left = look_after_bytes};
    }

private:
    static constexpr std::int64_t look_after_bytes = std::int64_t{4} << 20;

    struct Account {
        double saved_ns = 0;   // of the thread's time
        double wanted_ns = 0;  // to be saved for the block that was looked at last
        double cost_ns = 0;    // of an allocation; 0 before the first
        double free_cost_ns = 0;
        double share = 0;  // 0 before the first distance
    };
    static double cost_of(const Account& account, const Terms& terms) noexcept {
        return account.cost_ns == 0 ? terms.first_cost_ns : account.cost_ns;
    }
    static double time_of_block(const Account& account, const Terms& terms) noexcept {
        return (cost_of(account, terms) + account.free_cost_ns) / terms.share;
    }

    base::RandomDistance random_;
    SharedPace* shared_ = nullptr;
    bool has_looked_ = false;
    unsigned blocks_ = 0;
    std::uint64_t looked_ = 0;
    double passed_ = 0;  // bytes since the last look
    // What a thread loads first is seen well: its first time counts five times, until this was
    // given.
    double more_at_first_ns_ = 0.2e9;
    // What the thread requested, and in what time; what was before counts less.
    double bytes_ = 0;
    double time_ = 0;
    std::array<Account, max_watchers> accounts_;
};

}  // namespace tensorpool::watch
