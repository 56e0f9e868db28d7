// Without checks, faults that the look-up of a free notices stop the program. Faults without a
// look-up are found when the block returns to its span. Nothing is ever written through a bad
// pointer.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>

#include "misuse/misuse.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool {
namespace {

using testing::by_abort;
using testing::one_report;
using testing::Sized;

constexpr std::size_t kib = 1024;

class UncheckedMisuseDeathTest : public ::testing::Test {
protected:
    MemoryPool pool_{PoolOptions{.name = "mine", .checks = Checks::off}};
    MemoryPool other_{PoolOptions{.name = "theirs", .checks = Checks::off}};
};

TEST_F(UncheckedMisuseDeathTest, ForeignPointer) {
    alignas(64) char on_stack[128];
    for (void* const p :
         {static_cast<void*>(on_stack), reinterpret_cast<void*>(std::uintptr_t{0x10}),
          reinterpret_cast<void*>(UINTPTR_MAX)}) {
        EXPECT_EXIT(pool_.deallocate(p), by_abort(),
                    one_report("mine", p, "was never allocated by this pool"));
        EXPECT_EXIT(pool_.deallocate(p, 100 * kib), by_abort(),
                    one_report("mine", p, "was never allocated by this pool"));
        EXPECT_EXIT(pool_.reallocate(p, 100, 1000), by_abort(),
                    one_report("mine", p, "was never allocated by this pool"));
    }
}

TEST_F(UncheckedMisuseDeathTest, BlockOfAnotherPoolNamesBothPools) {
    for (const std::size_t bytes : {100 * kib, std::size_t{100}, 20 * kib}) {
        void* const block = other_.allocate(bytes);
        EXPECT_EXIT(pool_.deallocate(block), by_abort(),
                    one_report("mine", block, "lies in pool 'theirs'"));
        other_.deallocate(block);
    }
}

TEST_F(UncheckedMisuseDeathTest, InteriorPointerRevealedByItsAddress) {
    for (const std::size_t bytes : {100UL, 2000UL, 20 * kib, 100 * kib, 3 * kib * kib}) {
        auto* const block = static_cast<char*>(pool_.allocate(bytes));
        EXPECT_EXIT(
            pool_.deallocate(block + 8), by_abort(),
            one_report("mine", block + 8, "lies 8 B inside the block " + testing::text_of(block),
                       "expected the beginning of the block"));
        pool_.deallocate(block);
    }
}

TEST_F(UncheckedMisuseDeathTest, DoubleFreeOfALargeBlock) {
    void* const block = pool_.allocate(300 * kib);
    for (const Sized sized : {Sized::no, Sized::yes}) {
        EXPECT_EXIT(
            {
                testing::free_block(pool_, block, 300 * kib, sized);
                testing::free_block(pool_, block, 300 * kib, sized);
            },
            by_abort(), one_report("mine", block, "was freed twice"));
    }
}

TEST_F(UncheckedMisuseDeathTest, SmallBlockFreedAsALargeOne) {
    void* const block = pool_.allocate(100);
    EXPECT_EXIT(pool_.deallocate(block, 100 * kib), by_abort(),
                one_report("mine", block, "belongs to bucket 128 B", "not to whole pages"));
}

TEST_F(UncheckedMisuseDeathTest, DoubleFreeOfASmallBlockIsFoundLater) {
    for (const std::size_t bytes : {100UL, 20 * kib}) {
        void* const block = pool_.allocate(bytes);
        EXPECT_EXIT(
            {
                pool_.deallocate(block, bytes);
                pool_.deallocate(block, bytes);
                pool_.trim();
            },
            by_abort(), one_report("mine", block, "was freed twice"));
        pool_.deallocate(block, bytes);
    }
}

TEST_F(UncheckedMisuseDeathTest, WrongBlockInASizedFreeIsFoundLater) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "under a memory tool it is found at once";
    void* const large = pool_.allocate(300 * kib);
    void* const theirs = other_.allocate(100);
    alignas(64) char on_stack[128];
    for (void* const p : {large, theirs, static_cast<void*>(on_stack),
                          static_cast<void*>(static_cast<char*>(pool_.allocate(100)) + 64)}) {
        EXPECT_EXIT(
            {
                pool_.deallocate(pool_.allocate(100), 100);
                pool_.deallocate(p, 100);
                pool_.trim();
            },
            by_abort(), one_report("mine", p, "was freed as a block of bucket 128 B"));
    }
}

/// Returns true for a program that ran to its end or was stopped by an abort, so that no write
/// faulted.
bool finished_or_was_stopped(int status) {
    return (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
           (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST_F(UncheckedMisuseDeathTest, NothingIsWrittenThroughABadPointer) {
    void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    for (const std::size_t bytes : {100UL, 64 * kib, 300 * kib}) {
        for (const Sized sized : {Sized::no, Sized::yes}) {
            EXPECT_EXIT(
                {
                    pool_.deallocate(pool_.allocate(bytes), bytes);
                    testing::free_block(pool_, page, bytes, sized);
                    for (unsigned i = 0; i < 100; ++i) (void)pool_.allocate(bytes);
                    testing::free_block(pool_, page, bytes, sized);
                    pool_.trim();
                    _exit(0);
                },
                finished_or_was_stopped, "");
        }
    }
    munmap(page, 4096);
}

}  // namespace
}  // namespace tensorpool
