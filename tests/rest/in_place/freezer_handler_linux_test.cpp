// Which faults the system lets the process serve, and faults that cannot be served. Each test runs
// in a process of its own, because a process has one handler thread.

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>

#include "rest/in_place/frozen_blocks.hpp"
#include "support/child_process.hpp"
#include "support/own_threads_linux.hpp"

namespace tensorpool {
namespace {

using platform::FaultScope;
using stashing::freezer;
using testing::can_freeze;
using testing::content_of;
using testing::fill;
using testing::holds_in_child;
using testing::KiB;
using testing::piece_bytes;

bool contains(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

// ThreadSanitizer lets no child of a fork start a thread.
#ifndef __SANITIZE_THREAD__
// Returns the message of FreezeError; nothing if the block was frozen.
std::string refusal_of(PooledAllocation& block, const FreezeOptions& options = {}) {
    try {
        freeze(block, options);
    } catch (const FreezeError& error) {
        return error.what();
    }
    return {};
}

TEST(FreezerHandler, SystemCallFailsIfOnlyFaultsOfInstructionsAreServed) {
    if (!can_freeze(FaultScope::user_mode)) GTEST_SKIP() << "no userfaultfd(2) here";
    EXPECT_TRUE(holds_in_child([] {
        freezer().limit_scope(FaultScope::user_mode);
        MemoryPool pool;
        PooledAllocation block(pool, 512 * KiB);
        fill(block, 1);
        const auto before = content_of(block);
        const std::string refusal = refusal_of(block);
        if (!contains(refusal, "EFAULT") || !contains(refusal, "system_calls_may_fail"))
            return false;
        if (content_of(block) != before) return false;
        if (!testing::threads_named("tensorpool-thaw").empty()) return false;
        freeze(block, {.window_bytes = 256 * KiB, .system_calls_may_fail = true});
        int ends[2];
        if (pipe(ends) != 0) return false;
        errno = 0;
        if (write(ends[1], block.get(), 1) != -1 || errno != EFAULT) return false;
        PooledAllocation other(pool, 512 * KiB);
        if (!contains(refusal_of(other), "EFAULT")) return false;
        // Instructions read and write as ever, and the system call works once the piece is back.
        if (content_of(block) != before) return false;
        std::byte* const last = block.as<std::byte>().data() + 7 * piece_bytes;
        *last = std::byte{1};
        return write(ends[1], last, 1) == 1;
    }));
}

TEST(FreezerHandler, RefusesWhereNoFaultsAreServed) {
    EXPECT_TRUE(holds_in_child([] {
        freezer().limit_scope(FaultScope::none);
        MemoryPool pool;
        PooledAllocation block(pool, 512 * KiB);
        fill(block, 2);
        const auto before = content_of(block);
        const std::string refusal = refusal_of(block, {.system_calls_may_fail = true});
        return contains(refusal, "userfaultfd(2)") && contains(refusal, "use a Stash instead") &&
               content_of(block) == before && !is_frozen(block.get());
    }));
}

TEST(FreezerHandler, OrdinaryUserMayFreezeIfItAcceptsFailures) {
    if (geteuid() != 0) GTEST_SKIP() << "the test must begin as root";
    if (!can_freeze(FaultScope::user_mode)) GTEST_SKIP() << "no userfaultfd(2) here";
    EXPECT_TRUE(holds_in_child([] {
        if (setgid(65534) != 0 || setuid(65534) != 0) return false;
        MemoryPool pool;
        PooledAllocation block(pool, 512 * KiB);
        fill(block, 3);
        const auto before = content_of(block);
        freeze(block, {.system_calls_may_fail = true});
        return content_of(block) == before &&
               holds_in_child([&] { return content_of(block) == before; });
    }));
}

TEST(FreezerHandler, ChildWithFewerRightsGetsTheBlocksThawed) {
    if (geteuid() != 0) GTEST_SKIP() << "the test must begin as root";
    if (!can_freeze()) GTEST_SKIP() << "no userfaultfd(2) for system calls here";
    EXPECT_TRUE(holds_in_child([] {
        MemoryPool pool;
        PooledAllocation block(pool, 512 * KiB);
        fill(block, 8);
        const auto before = content_of(block);
        freeze(block);
        if (setgid(65534) != 0 || setuid(65534) != 0 || can_freeze()) return false;
        return content_of(block) == before && holds_in_child([&] {
                   return !is_frozen(block.get()) && content_of(block) == before;
               });
    }));
}
#endif

class FreezerHandlerDeath : public testing::Freezes {};

TEST_F(FreezerHandlerDeath, DamagedPieceEndsTheProcessWithALine) {
    PooledAllocation block(pool_, 512 * KiB);
    fill(block, 4);
    freeze(block, {.name = "layer.7"});
    freezer().damage(block.get(), 2);
    EXPECT_EQ(block.as<std::byte>()[piece_bytes], block.as<std::byte>()[piece_bytes]);
#ifndef __SANITIZE_THREAD__
    EXPECT_DEATH((void)*static_cast<volatile char*>(
                     static_cast<void*>(block.as<std::byte>().data() + 2 * piece_bytes)),
                 "tensorpool: freeze: 'layer.7', block 0x[0-9a-f]+: piece 2 of 8 cannot come back: "
                 "its encoding was overwritten");
#endif
}

#ifndef __SANITIZE_THREAD__
TEST_F(FreezerHandlerDeath, ClosedDescriptorEndsTheProcessWithALine) {
    PooledAllocation block(pool_, 512 * KiB);
    fill(block, 7);
    freeze(block);
    EXPECT_DEATH(
        {
            for (int file = 3; file != 2048; ++file) close(file);
            (void)*static_cast<volatile char*>(block.get());
            pause();
        },
        "tensorpool: freeze: the program closed descriptor [0-9]+, through which the page faults "
        "of 1 frozen blocks are served");
}
#endif

TEST_F(FreezerHandlerDeath, ThawOfADamagedPieceIsAnErrorAndTheBlockStaysFrozen) {
    PooledAllocation block(pool_, 512 * KiB);
    fill(block, 5);
    const auto before = content_of(block);
    freeze(block, {.name = "layer.8"});
    freezer().damage(block.get(), 7);
    try {
        thaw(block);
        ADD_FAILURE();
    } catch (const FreezeError& error) {
        EXPECT_TRUE(contains(error.what(), "'layer.8'")) << error.what();
        EXPECT_TRUE(contains(error.what(), "piece 7 of 8 cannot come back")) << error.what();
    }
    EXPECT_TRUE(is_frozen(block.get()));
    EXPECT_EQ(block.as<std::byte>()[0], before[0]);
    // The same change again repairs it.
    freezer().damage(block.get(), 7);
    EXPECT_TRUE(thaw(block));
    EXPECT_EQ(content_of(block), before);
}

TEST_F(FreezerHandlerDeath, WindowHoldsAgainAfterAFailedThaw) {
    PooledAllocation block(pool_, 1024 * KiB);
    fill(block, 5);
    const auto before = content_of(block);
    freeze(block, {.window_bytes = 256 * KiB});
    freezer().damage(block.get(), 15);
    EXPECT_THROW(thaw(block), FreezeError);
    freezer().damage(block.get(), 15);
    EXPECT_EQ(block.as<std::byte>().back(), before.back());
    // The next fault comes after the handler has made room.
    EXPECT_EQ(content_of(block), before);
    EXPECT_LE(freeze_statistics().resident_bytes, 256 * KiB);
    EXPECT_TRUE(thaw(block));
    EXPECT_EQ(content_of(block), before);
}

#ifndef __SANITIZE_THREAD__
TEST_F(FreezerHandlerDeath, ExitWithFrozenBlocksAndThreadsThatWait) {
    for (int round = 0; round != 10; ++round) {
        EXPECT_TRUE(holds_in_child([] {
            // Never destroyed, so that threads may use it until the process has ended.
            static auto& block = *new PooledAllocation(1024 * KiB);
            fill(block, 6);
            freeze(block, {.window_bytes = 256 * KiB});
            for (unsigned worker = 0; worker != 2; ++worker) {
                std::thread([worker] {
                    for (std::size_t at = worker;; at += piece_bytes + 1) {
                        std::atomic_ref(block.as<unsigned char>()[at % block.size()]).fetch_or(0);
                    }
                }).detach();
            }
            std::exit(0);
            return false;
        }));
    }
}
#endif

TEST_F(FreezerHandlerDeath, OneThreadServesAllBlocks) {
    PooledAllocation first(pool_, 512 * KiB);
    PooledAllocation second(pool_, 512 * KiB);
    freeze(first);
    freeze(second);
    EXPECT_EQ(testing::threads_named("tensorpool-thaw").size(), 1U);
}

}  // namespace
}  // namespace tensorpool
