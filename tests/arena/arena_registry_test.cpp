// The state of arenas in the child of a fork.

#include "arena/arena_state.hpp"
#include "platform/tools/memory_tools.hpp"

#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include <tensorpool/scratch.hpp>
#include <tensorpool/snapshot.hpp>

#include "arena/arena_test.hpp"
#include "arena/records.hpp"
#include "limits/commit_budget.hpp"
#include "platform/platform.hpp"
#include "support/child_process.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

using testing::bare_options;
using testing::gib;
using testing::holds;
using testing::kib;
using testing::mib;
using testing::write_pattern;

/// Runs `function` in a child that is ended if it hangs.
template <class Function>
bool holds_in_mortal_child(Function function) {
    return testing::holds_in_child([&] {
        alarm(60);
        return function();
    });
}

TEST(ArenaFork, ChildContinuesFromTheParentsState) {
    ArenaOptions options = bare_options();
    options.objects = true;
    Arena arena(options);
    void* const block = arena.allocate(mib);
    write_pattern(block, mib, 1);
    arena.record(block, {.name = "block", .kind = "tensor", .bytes = mib});
    const Arena::Mark mark = arena.mark();
    EXPECT_TRUE(holds_in_mortal_child([&] {
        if (!holds(block, mib, 1) || arena.used() != mib) return false;
        write_pattern(arena.allocate(10 * mib), 10 * mib, 2);
        if (arena.try_allocate(64 * mib) != nullptr) return false;
        write_pattern(block, mib, 3);
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
    const std::size_t before = limits::commit_budget().committed();
    auto arena = std::make_unique<Arena>(bare_options());
    arena->allocate(mib);
    EXPECT_TRUE(holds_in_mortal_child([&] {
        arena.reset();
        return limits::commit_budget().committed() == before && take_snapshot().arenas.empty();
    }));
}

/// Returns the word that allocations change.
std::uint64_t top_of(const Arena& arena) {
    return testing::arena_record(arena.statistics().id)->words.used;
}

TEST(ArenaFork, ClaimsStayPendingUntilItIsOver) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "a memory tool closes the path of claims";
    Arena arena(bare_options());
    arena.reserve(mib);
    auto* const first = static_cast<std::byte*>(arena.allocate(64));
    arena::arena_registry().before_fork();
    EXPECT_EQ(arena.used(), 64U) << "readers see no change";
    EXPECT_EQ(arena.statistics().used_bytes, 64U);
    const std::uint64_t top = top_of(arena);
    std::atomic<bool> granted = false;
    void* block = nullptr;
    std::thread other([&] {
        block = arena.allocate(640);
        granted = true;
    });
    testing::wait_until("the other thread has claimed its block",
                        [&] { return top_of(arena) != top; });
    EXPECT_FALSE(granted) << "its claim is pending";
    arena::arena_registry().after_fork_in_parent();
    other.join();
    EXPECT_EQ(block, first + 64) << "at the position that it claimed";
    EXPECT_EQ(arena.used(), 704U);
}

TEST(ArenaFork, ReleaseWaitsForItsEnd) {
    Arena arena(bare_options());
    const Arena::Mark mark = arena.mark();
    arena.allocate(mib);
    arena::arena_registry().before_fork();
    std::thread other([&] { arena.release_to(mark); });
    arena::arena_registry().after_fork_in_parent();
    other.join();
    EXPECT_EQ(arena.used(), 0U);
    EXPECT_NE(arena.allocate(64), nullptr);
    EXPECT_EQ(arena.used(), 64U);
}

TEST(ArenaFork, ArenasOfEveryKindKeepWorking) {
    alignas(64) std::byte buffer[4096];
    ArenaOptions one_threads = bare_options();
    one_threads.sharing = Sharing::one_thread;
    Arena own(one_threads);
    Arena over = Arena::over(buffer);
    Arena measuring = Arena::measuring();
    for (Arena* const arena : {&own, &over, &measuring}) {
        arena->allocate(64);
        EXPECT_TRUE(holds_in_mortal_child([&] {
            return arena->used() == 64 && arena->allocate(64) != nullptr && arena->used() == 128;
        })) << arena->name();
        EXPECT_EQ(arena->used(), 64U);
        auto* const next = static_cast<std::byte*>(arena->allocate(64));
        EXPECT_EQ(arena->allocate(64), next + 64);
        EXPECT_EQ(arena->used(), 192U);
    }
}

// Not under sanitizers: their malloc does not survive a fork during another thread's call.
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

TEST(ArenaFork, DuringGrowthsLeavesTheChildWorkingArenas) {
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
            if (block != nullptr) write_pattern(block, 640, i);
            try {
                arena.allocate(2 * mib);
                return false;
            } catch (const std::bad_alloc&) {
            }
            // The rest can be allocated, to the last byte.
            if (arena.used() < mib && arena.allocate(mib - arena.used()) == nullptr) return false;
            if (block != nullptr && !holds(block, 640, i)) return false;
            arena.release_to(mark);
            arena.reset();
            write_pattern(arena.allocate(mib), mib, i);
            if (!arena.objects().empty()) return false;
            Arena own(bare_options());
            write_pattern(own.allocate(3 * mib), 3 * mib, i);
            return take_snapshot().arenas.size() >= 2;
        })) << "fork "
            << i;
    }
    over = true;
    makes_arenas.join();
}

// The first arena of a process determines values that all arenas share. Effective only as the first
// test of a process.
TEST(ArenaFork, DuringTheFirstArenaLeavesTheChildWorkingArenas) {
    for (unsigned i = 0; i < 40; ++i) {
        EXPECT_TRUE(testing::holds_in_child([&] {
            std::atomic<bool> begins = false;
            std::thread first([&] {
                begins = true;
                // A fork takes some time until it copies the memory.
                for (unsigned j = 0; j < i * 500; ++j) platform::page_bytes();
                const Arena arena;
                Scratch::local().allocate(1000);
            });
            while (!begins) {
            }
            const bool works = testing::holds_in_child([] {
                alarm(10);
                Arena arena;
                return arena.allocate(1000) != nullptr &&
                       Scratch::local().allocate(1000) != nullptr;
            });
            first.join();
            return works;
        })) << "fork "
            << i;
    }
}

/// Allocates blocks, and publishes the end of the blocks that are known to be granted.
class Taker {
public:
    explicit Taker(Arena& arena)
        : arena_(arena), begin_(static_cast<std::byte*>(arena.allocate(64))) {
        for (std::thread& thread : threads_) thread = std::thread([this] { run(); });
    }
    ~Taker() {
        over_ = true;
        for (std::thread& thread : threads_) thread.join();
    }
    Taker(const Taker&) = delete;
    Taker& operator=(const Taker&) = delete;

    std::size_t known() const { return known_; }

private:
    void run() {
        while (!over_) {
            auto* const block = static_cast<std::byte*>(arena_.try_allocate(64));
            if (block == nullptr) continue;
            const auto end = static_cast<std::size_t>(block - begin_) + 64;
            std::size_t seen = known_;
            while (seen < end && !known_.compare_exchange_weak(seen, end)) {
            }
        }
    }

    Arena& arena_;
    std::byte* begin_;
    std::atomic<bool> over_ = false;
    std::atomic<std::size_t> known_ = 64;
    std::thread threads_[2];
};

TEST(ArenaFork, ChildSeesEverythingGrantedToOtherThreads) {
    for (int i = 0; i < 40; ++i) {
        ArenaOptions options = bare_options();
        options.max_capacity = gib;
        options.initial_capacity = gib;
        Arena arena(options);
        const Taker taker(arena);
        testing::wait_until("the other thread has taken 1,000 blocks",
                            [&] { return taker.known() >= std::size_t{1000} * 64; });
        EXPECT_TRUE(holds_in_mortal_child([&] {
            const std::size_t known = taker.known();
            return arena.used() >= known && arena.used() <= known + 2 * 64;
        })) << "fork "
            << i;
    }
}

TEST(ArenaFork, LeavesArenasOfOtherThreadsUnchanged) {
    std::atomic<bool> over = false;
    std::thread works([&] {
        for (unsigned i = 0; !over; ++i) {
            ArenaOptions options = bare_options();
            options.sharing = i % 2 == 0 ? Sharing::one_thread : Sharing::any_thread;
            Arena arena(options);
            for (unsigned round = 0; round < 100; ++round) {
                for (std::size_t block = 0; block < 10; ++block) {
                    EXPECT_EQ(arena.used(), 128 * block);
                    write_pattern(arena.allocate(128), 128, block);
                }
                arena.reset();
            }
        }
    });
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(testing::holds_in_child([] { return true; }));
    over = true;
    works.join();
}

#endif

}  // namespace
}  // namespace tensorpool
