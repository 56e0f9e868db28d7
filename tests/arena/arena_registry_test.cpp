// What a fork leaves of arenas in its child.

#include "arena/arena_registry.hpp"

#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include <tensorpool/snapshot.hpp>

#include "arena/arena_test.hpp"
#include "statistics/commit_budget.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

using testing::bare_options;
using testing::fill;
using testing::holds;
using testing::kib;
using testing::mib;

/// In a child that is ended when it hangs.
template <class Function>
bool holds_in_mortal_child(Function function) {
    return testing::holds_in_child([&] {
        alarm(60);
        return function();
    });
}

TEST(ArenaFork, ChildGoesOnWhereItsParentWas) {
    ArenaOptions options = bare_options();
    options.objects = true;
    Arena arena(options);
    void* const block = arena.allocate(mib);
    fill(block, mib, 1);
    arena.record(block, {.name = "block", .kind = "tensor", .bytes = mib});
    const Arena::Mark mark = arena.mark();
    EXPECT_TRUE(holds_in_mortal_child([&] {
        if (!holds(block, mib, 1) || arena.used() != mib) return false;
        fill(arena.allocate(10 * mib), 10 * mib, 2);
        if (arena.try_allocate(64 * mib) != nullptr) return false;
        fill(block, mib, 3);
        arena.release_to(mark);
        if (arena.objects().size() != 1) return false;
        arena.reset();
        return arena.trim() == 11 * mib && arena.objects().empty();
    }));
    EXPECT_TRUE(holds(block, mib, 1));
    EXPECT_EQ(arena.used(), mib);
    EXPECT_EQ(arena.capacity(), mib);
}

TEST(ArenaFork, ChildMayDestroyArenasOfItsParent) {
    const std::size_t before = statistics::commit_budget().committed();
    auto arena = std::make_unique<Arena>(bare_options());
    arena->allocate(mib);
    EXPECT_TRUE(holds_in_mortal_child([&] {
        arena.reset();
        return statistics::commit_budget().committed() == before && take_snapshot().arenas.empty();
    }));
}

// Not under sanitizers: their malloc does not survive a fork amid another thread's call.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/// Threads that fill one small arena until all requests fail, again and again.
class Storm {
public:
    explicit Storm(Arena& arena) : arena_(arena) {
        for (unsigned number = 0; number < thread_count; ++number) {
            threads_.emplace_back([this, number] { run(number); });
        }
    }
    ~Storm() {
        over_ = true;
        for (std::thread& thread : threads_) thread.join();
    }
    Storm(const Storm&) = delete;
    Storm& operator=(const Storm&) = delete;

private:
    static constexpr unsigned thread_count = 3;

    void run(unsigned number) {
        do {
            for (unsigned i = 0; i < 300; ++i) take(1 + (i * 7919 + number * 104729) % 20'000);
            phase_.arrive_and_wait();
        } while (!last_phase_);
    }
    void take(std::size_t bytes) {
        try {
            arena_.record(arena_.allocate(bytes), {.name = "o", .kind = "work"});
        } catch (const std::bad_alloc&) {
        }
    }
    struct EndPhase {
        Storm* storm;
        void operator()() noexcept {
            storm->arena_.reset();
            storm->arena_.trim();
            storm->last_phase_ = storm->over_.load();
        }
    };

    Arena& arena_;
    std::atomic<bool> over_ = false;
    std::atomic<bool> last_phase_ = false;
    std::barrier<EndPhase> phase_{thread_count, EndPhase{this}};
    std::vector<std::thread> threads_;
};

TEST(ArenaFork, AmidGrowthsAndRefusalsLeavesTheChildWorkingArenas) {
    ArenaOptions options = bare_options();
    options.max_capacity = mib;
    options.objects = true;
    Arena arena(options);
    const Storm storm(arena);
    std::atomic<bool> over = false;
    std::thread makes_arenas([&] {
        while (!over) {
            Arena own(bare_options());
            own.allocate(100 * kib);
            take_snapshot();
        }
    });
    for (unsigned i = 0; i < 100; ++i) {
        EXPECT_TRUE(holds_in_mortal_child([&] {
            const Arena::Mark mark = arena.mark();
            if (mark.offset() != arena.used() || mark.offset() > mib) return false;
            void* const block = arena.try_allocate(640);
            if (block != nullptr) fill(block, 640, i);
            try {
                arena.allocate(2 * mib);
                return false;
            } catch (const std::bad_alloc&) {
            }
            // What is left can be had to the last byte.
            if (arena.used() < mib && arena.allocate(mib - arena.used()) == nullptr) return false;
            if (block != nullptr && !holds(block, 640, i)) return false;
            arena.release_to(mark);
            arena.reset();
            fill(arena.allocate(mib), mib, i);
            if (!arena.objects().empty()) return false;
            Arena own(bare_options());
            fill(own.allocate(3 * mib), 3 * mib, i);
            return take_snapshot().arenas.size() >= 2;
        })) << "fork "
            << i;
    }
    over = true;
    makes_arenas.join();
}

#endif

}  // namespace
}  // namespace tensorpool
