#include <tensorpool/freeze.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <latch>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/arena.hpp>
#include <tensorpool/snapshot.hpp>
#include <tensorpool/stash.hpp>

#include "rest/in_place/frozen_blocks.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

using testing::can_freeze;
using testing::content_of;
using testing::fill;
using testing::Freezes;
using testing::KiB;
using testing::piece_bytes;

std::size_t resident_pages(const PooledAllocation& block) {
    const std::size_t page = 4 * KiB;
    std::vector<unsigned char> pages(block.size() / page);
    EXPECT_EQ(mincore(block.get(), pages.size() * page, pages.data()), 0);
    std::size_t resident = 0;
    for (const unsigned char is_resident : pages) resident += is_resident & 1;
    return resident;
}

template <class Error, class Function>
std::string message_of(Function function) {
    try {
        function();
    } catch (const Error& error) {
        return error.what();
    }
    return "no such error";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// Pages of which every second one may be read, so that each has a mapping of its own.
class ManyMappings {
public:
    explicit ManyMappings(std::size_t count) : bytes_(count * page) {
        begin_ = static_cast<std::byte*>(
            mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        for (std::size_t at = 0; at < bytes_; at += 2 * page)
            EXPECT_EQ(mprotect(begin_ + at, page, PROT_READ), 0);
    }
    ~ManyMappings() { munmap(begin_, bytes_); }
    ManyMappings(const ManyMappings&) = delete;
    ManyMappings& operator=(const ManyMappings&) = delete;

private:
    static constexpr std::size_t page = 4 * KiB;
    std::size_t bytes_;
    std::byte* begin_;
};

TEST_F(Freezes, AreRefusedWhileTheProcessHasThreeQuartersOfItsMappings) {
    PooledAllocation block(pool_, 128 * KiB);
    fill(block, 1);
    const auto before = content_of(block);
    {
        const ManyMappings most(platform::mappings_left());
        const std::string message = message_of<FreezeError>([&] {
            for (int i = 0; i < 300; ++i) {
                freeze(block);
                thaw(block);
            }
        });
        EXPECT_TRUE(contains(message, "three quarters of the mappings that vm.max_map_count"))
            << message;
        EXPECT_FALSE(is_frozen(block.get()));
        std::thread([] {}).join();
    }
    freeze(block);
    EXPECT_EQ(content_of(block), before);
}

TEST_F(Freezes, PagesGoAndContentComesBackAtTheSameAddress) {
    PooledAllocation block(pool_, 1024 * KiB);
    fill(block, 1);
    const auto before = content_of(block);
    const void* const address = block.get();
    freeze(block);
    EXPECT_TRUE(is_frozen(address));
    EXPECT_EQ(resident_pages(block), 0U);
    EXPECT_EQ(block.get(), address);
    EXPECT_EQ(content_of(block), before);
    EXPECT_TRUE(thaw(block));
    EXPECT_FALSE(is_frozen(address));
    EXPECT_EQ(content_of(block), before);
    EXPECT_FALSE(thaw(block));
}

TEST_F(Freezes, OnlyTheTouchedPieceComesBack) {
    PooledAllocation block(pool_, 1024 * KiB);
    fill(block, 2);
    freeze(block);
    (void)*static_cast<volatile char*>(block.get());
    EXPECT_EQ(resident_pages(block), piece_bytes / (4 * KiB));
    EXPECT_EQ(freeze_statistics(block.get()).resident_bytes, piece_bytes);
    EXPECT_EQ(freeze_statistics(block.get()).faults, 1U);
}

TEST_F(Freezes, WindowBoundsResidentMemory) {
    PooledAllocation block(pool_, 4096 * KiB);
    fill(block, 3);
    const auto before = content_of(block);
    freeze(block, {.window_bytes = 256 * KiB});
    for (std::size_t at = 0; at < block.size(); at += piece_bytes) {
        EXPECT_EQ(block.as<std::byte>()[at], before[at]);
        EXPECT_LE(freeze_statistics(block.get()).resident_bytes, 256 * KiB);
        EXPECT_LE(resident_pages(block), 64U);
    }
    EXPECT_EQ(freeze_statistics(block.get()).faults, 64U);
    EXPECT_EQ(freeze_statistics(block.get()).encoded_again, 0U);
}

TEST_F(Freezes, WrittenPiecesAreEncodedAgain) {
    PooledAllocation block(pool_, 2048 * KiB);
    fill(block, 4);
    freeze(block, {.window_bytes = 256 * KiB});
    auto expected = content_of(block);
    for (std::size_t at = 5; at < block.size(); at += piece_bytes) {
        // Some pieces come back by the write, others by a read before.
        std::byte& byte = block.as<std::byte>()[at];
        if (at % 2 == 0) {
            EXPECT_EQ(byte, expected[at]);
        }
        byte = std::byte{7};
        expected[at] = std::byte{7};
    }
    EXPECT_EQ(content_of(block), expected);
    EXPECT_GT(freeze_statistics(block.get()).encoded_again, 20U);
    EXPECT_TRUE(thaw(block));
    EXPECT_EQ(content_of(block), expected);
}

TEST_F(Freezes, BlockThatWasNeverTouchedReadsAsZerosAndTakesNoRoom) {
    PooledAllocation block(pool_, 1024 * KiB);
    freeze(block, {.type = DataType::of<float>()});
    EXPECT_EQ(freeze_statistics(block.get()).bytes_at_rest, 0U);
    EXPECT_EQ(content_of(block), std::vector<std::byte>(block.size()));
}

TEST_F(Freezes, ConstantTensorTakesNoRoom) {
    PooledAllocation block(pool_, 1024 * KiB);
    for (double& value : block.as<double>()) value = 1.1;
    freeze(block, {.type = DataType::of<double>()});
    EXPECT_EQ(freeze_statistics(block.get()).bytes_at_rest, 0U);
    EXPECT_EQ(block.as<double>()[77777], 1.1);
}

TEST_F(Freezes, LastPartOfAPageStaysResident) {
    PooledAllocation block(pool_, 100 * KiB + 123);
    fill(block, 5);
    block.as<std::byte>().back() = std::byte{9};
    const auto before = content_of(block);
    freeze(block);
    EXPECT_EQ(freeze_statistics(block.get()).frozen_bytes, 100 * KiB);
    EXPECT_EQ(content_of(block), before);
}

TEST_F(Freezes, SystemCallsReadAndWriteFrozenPages) {
    PooledAllocation block(pool_, 256 * KiB);
    fill(block, 6);
    const auto before = content_of(block);
    freeze(block);
    const int file = memfd_create("freeze", 0);
    EXPECT_EQ(write(file, block.get(), block.size()), static_cast<ssize_t>(block.size()));
    std::vector<std::byte> written(block.size());
    EXPECT_EQ(pread(file, written.data(), written.size(), 0), static_cast<ssize_t>(written.size()));
    EXPECT_EQ(written, before);
    EXPECT_TRUE(thaw(block));
    freeze(block);
    const char text[] = "text";
    EXPECT_EQ(pwrite(file, text, sizeof(text), 0), static_cast<ssize_t>(sizeof(text)));
    EXPECT_EQ(pread(file, block.get(), sizeof(text), 0), static_cast<ssize_t>(sizeof(text)));
    EXPECT_STREQ(static_cast<const char*>(block.get()), text);
    close(file);
}

TEST_F(Freezes, FreeOfAFrozenBlockEndsItsFreezing) {
    for (const std::size_t bytes : {100 * KiB, 20'000 * KiB}) {
        void* const block = pool_.allocate(bytes);
        std::memset(block, 1, bytes);
        freeze(pool_, block);
        pool_.deallocate(block, bytes);
        EXPECT_FALSE(is_frozen(block));
        EXPECT_EQ(freeze_statistics().blocks, 0U);
        // The next block at the address is an ordinary one.
        void* const next = pool_.allocate(bytes);
        std::memset(next, 2, bytes);
        EXPECT_EQ(static_cast<char*>(next)[bytes - 1], 2);
        EXPECT_EQ(freeze_statistics().faults, 0U);
        pool_.deallocate(next);
    }
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_F(Freezes, HandleOfAFrozenBlockMayMoveAndEnd) {
    PooledAllocation block(pool_, 128 * KiB);
    fill(block, 7);
    const auto before = content_of(block);
    freeze(block);
    PooledAllocation moved = std::move(block);
    EXPECT_EQ(content_of(moved), before);
    moved.reset();
    EXPECT_EQ(freeze_statistics().blocks, 0U);
}

TEST_F(Freezes, PoolMayEndWithFrozenBlocks) {
    for (int round = 0; round != 2; ++round) {
        MemoryPool pool;
        void* const block = pool.allocate(1024 * KiB);
        std::memset(block, round, 1024 * KiB);
        freeze(pool, block);
    }
    EXPECT_EQ(freeze_statistics().blocks, 0U);
}

TEST_F(Freezes, ReallocateOfAFrozenBlockKeepsItsContent) {
    void* block = pool_.allocate(1024 * KiB);
    std::memset(block, 3, 1024 * KiB);
    freeze(pool_, block);
    block = pool_.reallocate(block, 1024 * KiB, 4096 * KiB);
    EXPECT_EQ(freeze_statistics().blocks, 0U);
    EXPECT_EQ(static_cast<char*>(block)[1024 * KiB - 1], 3);
    pool_.deallocate(block);
}

TEST_F(Freezes, FrozenBlockMayBeStashed) {
    PooledAllocation block(pool_, 1024 * KiB);
    fill(block, 10);
    const auto before = content_of(block);
    freeze(block);
    Stash at_rest = stash(std::move(block));
    EXPECT_EQ(freeze_statistics().blocks, 0U);
    EXPECT_EQ(content_of(at_rest.restore()), before);
}

TEST_F(Freezes, HardenedPoolsFreezeAndFreeBlocks) {
    PoolOptions options;
    options.checks = Checks::hardened;
    MemoryPool pool(options);
    PooledAllocation block(pool, 300 * KiB + 1);
    fill(block, 8);
    const auto before = content_of(block);
    freeze(block);
    EXPECT_EQ(content_of(block), before);
    block.reset();
    EXPECT_EQ(freeze_statistics().blocks, 0U);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST_F(Freezes, PoolCountsAFrozenBlockAsInUseAndTrimLeavesIt) {
    PooledAllocation block(pool_, 1024 * KiB);
    fill(block, 9);
    const auto before = content_of(block);
    const std::size_t in_use = pool_.get_total_allocated();
    freeze(block);
    pool_.trim();
    EXPECT_EQ(pool_.get_total_allocated(), in_use);
    EXPECT_EQ(pool_.get_total_capacity(), in_use);
    EXPECT_EQ(content_of(block), before);
}

TEST_F(Freezes, ThreadsReadAndWriteFrozenBlocksAsIfTheyWereNot) {
    constexpr int threads = 4;
#ifdef __SANITIZE_THREAD__
    constexpr int steps = 1000;  // each decodes a piece, twenty times slower
#else
    constexpr int steps = 3000;
#endif
    constexpr std::size_t blocks = 3;
    std::vector<PooledAllocation> frozen;
    for (std::size_t i = 0; i != blocks; ++i) {
        frozen.emplace_back(pool_, 1500 * KiB + 4 * KiB * i);
        fill(frozen[i], static_cast<unsigned>(i));
    }
    // Each thread owns the bytes at its remainder, in all pages of all blocks.
    std::vector<std::vector<std::byte>> model;
    for (const PooledAllocation& block : frozen) model.push_back(content_of(block));
    const DataType types[] = {DataType::of<float>(), {}, {DataCode::bfloat, 0, 16, 1}};
    for (std::size_t i = 0; i != blocks; ++i) {
        freeze(frozen[i], {.type = types[i], .window_bytes = (256 + 128 * i) * KiB});
    }
    std::atomic<std::size_t> wrong = 0;
    std::vector<std::thread> workers;
    for (int worker = 0; worker != threads; ++worker) {
        workers.emplace_back([&, worker] {
            std::mt19937 random(static_cast<unsigned>(worker));
            for (int step = 0; step != steps; ++step) {
                const std::size_t i = random() % blocks;
                const std::size_t at = random() % (frozen[i].size() / threads) * threads +
                                       static_cast<std::size_t>(worker);
                auto& byte = static_cast<std::byte*>(frozen[i].get())[at];
                if (byte != model[i][at]) ++wrong;
                if (random() % 2 == 0) byte = model[i][at] = std::byte(random() & 255);
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(wrong, 0U);
    for (std::size_t i = 0; i != blocks; ++i) {
        EXPECT_LE(freeze_statistics(frozen[i].get()).resident_bytes, (256 + 128 * i) * KiB);
        EXPECT_EQ(content_of(frozen[i]), model[i]) << i;
    }
}

TEST_F(Freezes, ThawAndFreezeWhileThreadsUseTheBlock) {
    PooledAllocation block(pool_, 1024 * KiB);
    std::memset(block.get(), 0, block.size());
    freeze(block, {.window_bytes = 256 * KiB});
    std::atomic<bool> ends = false;
    std::atomic<std::size_t> wrong = 0;
    std::vector<std::thread> workers;
    for (std::size_t worker = 0; worker != 3; ++worker) {
        workers.emplace_back([&, worker] {
            std::mt19937 random(static_cast<unsigned>(worker));
            std::vector<std::byte> model(block.size());
            while (!ends) {
                const std::size_t at = random() % (block.size() / 3) * 3 + worker;
                auto& byte = static_cast<std::byte*>(block.get())[at];
                if (byte != model[at]) ++wrong;
                byte = model[at] = std::byte(random() & 255);
            }
        });
    }
    for (int round = 0; round != 40; ++round) {
        EXPECT_TRUE(thaw(block));
        freeze(block, {.window_bytes = 256 * KiB});
    }
    ends = true;
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(wrong, 0U);
}

TEST_F(Freezes, ManyBlocksAreFoundByTheirAddresses) {
    std::vector<PooledAllocation> blocks;
    for (unsigned i = 0; i != 200; ++i) {
        blocks.emplace_back(pool_, 68 * KiB);
        std::memset(blocks[i].get(), static_cast<int>(i), blocks[i].size());
        freeze(blocks[i]);
    }
    EXPECT_EQ(freeze_statistics().blocks, 200U);
    for (unsigned i = 0; i != 200; ++i) {
        EXPECT_EQ(std::to_integer<unsigned>(blocks[i].as<std::byte>().back()), i);
    }
    blocks.clear();
    EXPECT_EQ(freeze_statistics().blocks, 0U);
}

TEST_F(Freezes, RefusalsNameWhatWasFoundAndExpected) {
    const auto refusal = [&](void* block, const FreezeOptions& options = {}) {
        return message_of<std::invalid_argument>([&] { freeze(pool_, block, options); });
    };
    PooledAllocation small(pool_, 1000);
    PooledAllocation large(pool_, 1024 * KiB);
    PooledAllocation nothing;
    int local = 0;
    EXPECT_TRUE(contains(refusal(nullptr), "expected the address of a block in use of pool"));
    EXPECT_TRUE(contains(refusal(&local), "expected the address of a block in use of pool"));
    EXPECT_TRUE(contains(refusal(small.get()), "it has 1024 B; expected a block of whole pages"));
    Budget budget("request");
    const auto allocate_charged = [&] {
        const BudgetScope scope(budget);
        return PooledAllocation(pool_, 1000);
    };
    const PooledAllocation charged = allocate_charged();
    EXPECT_TRUE(contains(refusal(charged.get()), "it has 1024 B; expected a block of whole pages"));
    EXPECT_TRUE(contains(refusal(static_cast<char*>(large.get()) + 1020 * KiB),
                         "an address inside a block"));
    EXPECT_TRUE(
        contains(refusal(static_cast<char*>(large.get()) + 64), "an address inside a block"));
    EXPECT_TRUE(contains(refusal(large.get(), {.window_bytes = 1}),
                         "window_bytes is 1 B; expected at least 256 KiB"));
    EXPECT_TRUE(contains(refusal(large.get(), {.name = "kv", .window_bytes = 0}), "'kv'"));
    EXPECT_TRUE(contains(message_of<std::invalid_argument>([&] { freeze(nothing); }),
                         "the handle owns nothing"));
    Arena arena;
    PooledAllocation of_arena(arena, 1024 * KiB);
    EXPECT_TRUE(contains(message_of<std::invalid_argument>([&] { freeze(of_arena); }),
                         "a source of kind 'arena'; expected a block of a pool"));
    EXPECT_NE(of_arena.get(), nullptr);
    freeze(large);
    EXPECT_TRUE(contains(refusal(large.get()), "frozen already"));
    MemoryPool other;
    EXPECT_TRUE(contains(message_of<std::invalid_argument>([&] { freeze(other, large.get()); }),
                         "expected the address of a block in use of pool"));
}

TEST_F(Freezes, OnlyOneOfTwoThreadsFreezesABlock) {
    PooledAllocation block(pool_, 1024 * KiB);
    fill(block, 3);
    const auto before = content_of(block);
    for (int round = 0; round != 20; ++round) {
        std::latch begin(2);
        std::atomic<int> refused = 0;
        const auto freeze_it = [&] {
            begin.arrive_and_wait();
            try {
                freeze(block, {.window_bytes = 256 * KiB});
            } catch (const std::invalid_argument& error) {
                EXPECT_NE(std::string(error.what()).find("it is frozen already"), std::string::npos)
                    << error.what();
                ++refused;
            }
        };
        std::thread other(freeze_it);
        freeze_it();
        other.join();
        ASSERT_EQ(refused, 1);
        ASSERT_EQ(freeze_statistics().blocks, 1U);
        ASSERT_EQ(content_of(block), before);
        ASSERT_TRUE(thaw(block));
    }
}

TEST_F(Freezes, BlocksAreInSnapshotsByName) {
    const auto named = [] {
        for (const StashStatistics& one : take_snapshot().stashes)
            if (std::string(one.name) == "in a snapshot") return one;
        return StashStatistics();
    };
    PooledAllocation block(pool_, 1024 * KiB);
    fill(block, 1);
    freeze(block, {.name = "in a snapshot", .window_bytes = 256 * KiB});
    (void)*static_cast<volatile char*>(block.get());
    // Waits until the handler is done with the fault.
    const FreezeStatistics own = freeze_statistics(block.get());
    StashStatistics seen = named();
    EXPECT_EQ(seen.kind, StashStatistics::Kind::frozen);
    EXPECT_EQ(seen.tensors, 1U);
    EXPECT_EQ(seen.memory_bytes, own.resident_bytes);
    EXPECT_EQ(seen.memory_bytes, piece_bytes);
    EXPECT_EQ(seen.stashed_bytes, 1024 * KiB - piece_bytes);
    EXPECT_EQ(seen.compressed_bytes, own.bytes_at_rest);
    EXPECT_EQ(seen.misses, 1U);
    EXPECT_EQ(seen.stashes, 1U);
    EXPECT_GT(seen.restore_ns, 0U);
    thaw(block);
    seen = named();
    EXPECT_EQ(seen.restores, 1U);
    EXPECT_EQ(seen.tensors + seen.memory_bytes + seen.stashed_bytes + seen.compressed_bytes, 0U);
}

}  // namespace
}  // namespace tensorpool
