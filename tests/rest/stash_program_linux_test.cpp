// Random programs of stashes against a map of bytes.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <optional>
#include <thread>

#include <tensorpool/stash.hpp>

#include "rest/spill_files_linux.hpp"
#include "rest/test_content.hpp"
#include "support/child_process.hpp"

namespace tensorpool::stashing {
namespace {

constexpr std::size_t KiB = 1024;

/// While it exists, files cannot grow, as on a full disk.
class FullFolder {
public:
    explicit FullFolder(bool is_full) {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit none = {0, before_.rlim_max};
        if (is_full) setrlimit(RLIMIT_FSIZE, &none);
    }
    ~FullFolder() { setrlimit(RLIMIT_FSIZE, &before_); }
    FullFolder(const FullFolder&) = delete;
    FullFolder& operator=(const FullFolder&) = delete;

private:
    rlimit before_ = {};
};

struct Pools {
    MemoryPool tensors{PoolOptions{.name = "tensors"}};
    MemoryPool store{PoolOptions{.name = "at rest"}};
    /// Refuses some of the tensors, and some of what they become at rest.
    MemoryPool small{PoolOptions{.name = "small", .max_capacity = 768 * KiB}};
};

/// What the steps have met, so that a test can require all of it.
struct Met {
    unsigned restores = 0;
    unsigned spilled = 0;
    unsigned full_folders = 0;
    unsigned refused_stashes = 0;
    unsigned refused_restores = 0;
    unsigned forks = 0;
};

/// One thread's stashes, and a map of their bytes. Each step checks what it touches.
class Program {
public:
    Program(unsigned seed, Pools& pools, Met& met) : pools_(pools), generator_(seed), met_(met) {}

    void run(int steps, bool with_full_folders, bool with_forks) {
        for (int step = 0; step < steps && !::testing::Test::HasFatalFailure(); ++step) {
            Slot& slot = any_slot();
            const auto action = below(16);
            if (action < 5) {
                put(slot, with_full_folders && below(6) == 0);
            } else if (action < 9) {
                restore(slot);
            } else if (action == 9) {
                drop(slot);
            } else if (action == 10) {
                slot.stash.prefetch();
            } else if (action < 13) {
                move(any_slot(), slot);
            } else if (action == 13) {
                swap(any_slot(), slot);
            } else if (with_forks && action == 14 && below(3) == 0) {
                fork_and_compare();
            } else {
                check(slot);
            }
        }
    }
    /// Restores all, which ends the program. Of what rests in the small pool, some must be dropped
    /// if there is no room left to decode the rest in.
    void restore_all() {
        for (Slot& slot : slots_) {
            check(slot);
            if (!slot.bytes) continue;
            try {
                ASSERT_TRUE(holds(slot.stash.restore(pools_.tensors), *slot.bytes));
                slot.bytes.reset();
            } catch (const AllocationError& error) {
                ASSERT_NE(std::string(error.what()).find("small"), std::string::npos);
                drop(slot);
            }
        }
    }

private:
    struct Slot {
        Stash stash;
        std::optional<Bytes> bytes;
    };

    std::size_t below(std::size_t count) { return generator_() % count; }
    Slot& any_slot() { return slots_[below(slots_.size())]; }

    StashOptions any_options() {
        static const DataType types[] = {DataType(),
                                         DataType::of<float>(),
                                         DataType::of<std::uint16_t>(),
                                         {.code = DataCode::bfloat, .bits = 16}};
        return {.name = "x",
                .type = types[below(std::size(types))],
                .method = static_cast<StashMethod>(below(3)),
                .folder = ".",
                .pool = below(4) == 0 ? &pools_.small : &pools_.store};
    }

    // Replaces what the slot has. If that fails, both stay as they were.
    void put(Slot& slot, bool folder_is_full) {
        const StashOptions options = any_options();
        Bytes bytes = content(below(4) == 0 ? below(2'000 * KiB) : below(100 * KiB), generator_);
        PooledAllocation block = block_with(bytes, pools_.tensors, below(2) == 0 ? 64 : 4096);
        const bool is_copied = below(4) == 0;
        try {
            const FullFolder folder(folder_is_full);
            Stash made = is_copied ? Stash(block.as<const std::byte>(), options)
                                   : stash(std::move(block), options);
            slot.stash = std::move(made);
        } catch (const AllocationError&) {
            ASSERT_EQ(options.pool, &pools_.small);
            ASSERT_TRUE(holds(block, bytes));
            ++met_.refused_stashes;
            return check(slot);
        } catch (const StashError& error) {
            ASSERT_TRUE(folder_is_full) << error.what();
            ASSERT_STREQ(error.what(), "tensorpool: stash 'x': folder '.': write: File too large");
            ASSERT_TRUE(holds(block, bytes));
            ++met_.full_folders;
            return check(slot);
        }
        ASSERT_EQ(static_cast<bool>(block), is_copied && !bytes.empty());
        slot.bytes = std::move(bytes);
        met_.spilled += slot.stash.bytes_spilled() != 0;
        check(slot);
    }

    void restore(Slot& slot) {
        if (!slot.bytes) {
            ASSERT_THROW((void)slot.stash.restore(), std::logic_error);
            return;
        }
        const std::size_t at_rest = slot.stash.bytes_at_rest();
        try {
            switch (below(4)) {
                case 0:
                    ASSERT_TRUE(holds(slot.stash.restore(), *slot.bytes));
                    break;
                case 1:
                    ASSERT_TRUE(holds(slot.stash.restore(pools_.small), *slot.bytes));
                    break;
                case 2:
                    ASSERT_TRUE(holds(slot.stash.restore(pools_.tensors), *slot.bytes));
                    break;
                default:
                    Bytes memory(slot.bytes->size());
                    slot.stash.restore_to(memory);
                    ASSERT_TRUE(memory == *slot.bytes);
            }
        } catch (const AllocationError&) {
            // The small pool had no room for the tensor, or none to decode in.
            ASSERT_EQ(slot.stash.bytes_at_rest(), at_rest);
            ++met_.refused_restores;
            return check(slot);
        }
        slot.bytes.reset();
        ++met_.restores;
        check(slot);
    }

    void drop(Slot& slot) {
        slot.stash = Stash();
        slot.bytes.reset();
        check(slot);
    }

    void move(Slot& from, Slot& to) {
        if (&from == &to) return;
        to.stash = std::move(from.stash);
        to.bytes = std::exchange(from.bytes, std::nullopt);
        check(from);
        check(to);
    }

    void swap(Slot& one, Slot& other) {
        std::swap(one.stash, other.stash);
        std::swap(one.bytes, other.bytes);
        check(one);
        check(other);
    }

    // The child drops some stashes, makes others, and restores the rest.
    void fork_and_compare() {
        ++met_.forks;
        const bool had_failed = ::testing::Test::HasFailure();
        ASSERT_TRUE(testing::holds_in_child([&] {
            try {
                for (int i = 0; i < 4; ++i) drop(any_slot());
                for (int i = 0; i < 4; ++i) put(any_slot(), false);
                restore_all();
            } catch (const std::exception& error) {
                ADD_FAILURE() << error.what();
            }
            std::fflush(stdout);  // what failed
            return had_failed || !::testing::Test::HasFailure();
        }));
    }

    void check(const Slot& slot) {
        ASSERT_EQ(static_cast<bool>(slot.stash), slot.bytes.has_value());
        ASSERT_EQ(slot.stash.size(), slot.bytes ? slot.bytes->size() : 0);
        ASSERT_EQ(slot.stash.name(), slot.bytes ? "x" : "");
        ASSERT_EQ(slot.stash.bytes_at_rest() != 0, slot.bytes && !slot.bytes->empty());
        ASSERT_LE(slot.stash.bytes_spilled(), slot.stash.bytes_at_rest());
    }

    Pools& pools_;
    Generator generator_;
    Met& met_;
    std::array<Slot, 24> slots_;
};

class StashProgramTest : public ::testing::Test {
protected:
    /// The tests run in the build folder, which lies on a disk unless the machine has none.
    void SetUp() override {
        const std::string problem = message_of([&] {
            const Bytes one(1);
            Stash(std::span(one), {.method = StashMethod::spill, .folder = "."});
        });
        if (!problem.empty()) GTEST_SKIP() << problem;
    }
    void expect_all_free() const {
        for (const MemoryPool* pool : {&pools_.tensors, &pools_.store, &pools_.small})
            EXPECT_EQ(pool->statistics().in_use_bytes, 0U);
        EXPECT_EQ(spill_file(), -1);
    }

    Pools pools_;
};

// Three pools have more locks than ThreadSanitizer follows at a fork.
#ifdef __SANITIZE_THREAD__
constexpr bool may_fork = false;
#else
constexpr bool may_fork = true;
#endif

TEST_F(StashProgramTest, AgreesWithAMapOfBytes) {
    Met met;
    for (unsigned seed = 0; seed < 5; ++seed) {
        Program program(seed, pools_, met);
        program.run(300, true, may_fork);
        program.restore_all();
        ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    }
    EXPECT_GT(met.restores, 100U);
    EXPECT_GT(met.spilled, 100U);
    EXPECT_GT(met.full_folders, 10U);
    EXPECT_GT(met.refused_stashes, 10U);
    EXPECT_GT(met.refused_restores, 2U);
    if (may_fork) EXPECT_GT(met.forks, 10U);
    expect_all_free();
}

// A full folder is one of the whole process, and a child of a fork has no other threads.
TEST_F(StashProgramTest, ThreadsAgreeWithMapsOfBytes) {
    std::vector<std::thread> threads;
    for (unsigned seed = 100; seed < 104; ++seed) {
        threads.emplace_back([this, seed] {
            Met met;
            Program program(seed, pools_, met);
            program.run(200, false, false);
            program.restore_all();
        });
    }
    for (std::thread& thread : threads) thread.join();
    expect_all_free();
}

}  // namespace
}  // namespace tensorpool::stashing
