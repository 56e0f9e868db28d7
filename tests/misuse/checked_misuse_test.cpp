// Faults at which a pool with checks stops the program, with sized and unsized frees.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "misuse/misuse.hpp"

namespace tensorpool {
namespace {

using testing::by_abort;
using testing::one_report;
using testing::Sized;

constexpr std::size_t kib = 1024;
constexpr std::size_t sizes[] = {100, 3000, 20 * kib, 64 * kib, 300 * kib, 5 * kib* kib};

class CheckedMisuseDeathTest : public ::testing::TestWithParam<Sized> {
protected:
    static PoolOptions options(const char* name) { return {.name = name, .checks = Checks::full}; }
    void free(void* p, std::size_t bytes) { testing::free_block(pool_, p, bytes, GetParam()); }
    void expect_stop(void* p, std::size_t bytes, const std::string& found) {
        EXPECT_EXIT(free(p, bytes), by_abort(), one_report("mine", p, found)) << bytes;
    }

    MemoryPool pool_{options("mine")};
};

INSTANTIATE_TEST_SUITE_P(Levels, CheckedMisuseDeathTest, ::testing::Values(Sized::no, Sized::yes),
                         [](const auto& sized) {
                             return sized.param == Sized::yes ? "fullSized" : "fullUnsized";
                         });

TEST_P(CheckedMisuseDeathTest, ForeignPointer) {
    alignas(64) char on_stack[128];
    const std::unique_ptr<void, decltype(&std::free)> from_malloc(std::malloc(1000), &std::free);
    for (const std::size_t bytes : sizes) {
        expect_stop(on_stack, bytes, "was never allocated by this pool");
        expect_stop(from_malloc.get(), bytes, "was never allocated by this pool");
    }
    for (const std::uintptr_t number : {std::uintptr_t{0x10}, UINTPTR_MAX, UINTPTR_MAX / 2 + 1}) {
        expect_stop(reinterpret_cast<void*>(number), 100, "was never allocated by this pool");
    }
}

TEST_P(CheckedMisuseDeathTest, InteriorPointer) {
    for (const std::size_t bytes : sizes) {
        auto* const block = static_cast<char*>(pool_.allocate(bytes));
        const std::size_t usable = pool_.usable_size(block);
        for (const std::size_t inside : {std::size_t{1}, usable / 2, usable - 1}) {
            EXPECT_EXIT(free(block + inside, bytes), by_abort(),
                        one_report("mine", block + inside,
                                   "lies " + std::to_string(inside) + " B inside the block " +
                                       testing::text_of(block) + " of ",
                                   "expected the beginning of the block"));
        }
        pool_.deallocate(block);
    }
}

TEST_P(CheckedMisuseDeathTest, BlockOfAnotherPoolNamesBothPools) {
    MemoryPool other(PoolOptions{.name = "theirs", .checks = Checks::off});
    for (const std::size_t bytes : sizes) {
        void* const block = other.allocate(bytes);
        expect_stop(block, bytes, "lies in pool 'theirs'");
        other.deallocate(block, bytes);
    }
}

TEST_P(CheckedMisuseDeathTest, DoubleFree) {
    for (const std::size_t bytes : sizes) {
        void* const neighbour = pool_.allocate(bytes);
        void* const block = pool_.allocate(bytes);
        void* const other_neighbour = pool_.allocate(bytes);
        free(block, bytes);
        expect_stop(block, bytes, "was freed twice");
        free(neighbour, bytes);
        free(other_neighbour, bytes);
    }
}

TEST_P(CheckedMisuseDeathTest, DoubleFreeWithFreeNeighbours) {
    for (const std::size_t bytes : sizes) {
        void* const block = pool_.allocate(bytes);
        free(block, bytes);
        expect_stop(block, bytes, "(was freed twice|was never allocated)");
        pool_.trim();
        expect_stop(block, bytes, "(was freed twice|was never allocated)");
    }
}

TEST_P(CheckedMisuseDeathTest, DoubleFreeByTwoThreads) {
    for (const std::size_t bytes : sizes) {
        void* const neighbour = pool_.allocate(bytes);
        void* const block = pool_.allocate(bytes);
        void* const other_neighbour = pool_.allocate(bytes);
        std::thread([&] { free(block, bytes); }).join();
        expect_stop(block, bytes, "was freed twice");
        free(neighbour, bytes);
        free(other_neighbour, bytes);
    }
}

TEST_P(CheckedMisuseDeathTest, ReallocationAfterFree) {
    for (const std::size_t bytes : sizes) {
        void* const neighbour = pool_.allocate(bytes);
        void* const block = pool_.allocate(bytes);
        void* const other_neighbour = pool_.allocate(bytes);
        free(block, bytes);
        EXPECT_EXIT(pool_.reallocate(block, bytes, 2 * bytes), by_abort(),
                    one_report("mine", block, "was freed twice"));
        free(neighbour, bytes);
        free(other_neighbour, bytes);
    }
}

}  // namespace
}  // namespace tensorpool
