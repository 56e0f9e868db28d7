// Random scopes, allocations, marks and trims against a model.

#include <tensorpool/scratch.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "arena/scratch/scratch_tools.hpp"
#include "models/pattern.hpp"
#include "pages/random.hpp"

namespace tensorpool {
namespace {

using namespace testing;

/// The expected state of a scratch. Blocks are kept in the order of their allocation. A scope or a
/// mark is represented by the number of blocks at its beginning.
class ScratchModel {
public:
    ScratchModel(Scratch& scratch, std::uint32_t seed) : scratch_(scratch), random_(seed) {}

    /// Runs a scope with random steps in it.
    void run_scope(unsigned depth) {
        const std::size_t first = blocks_.size();
        const std::size_t used = scratch_.used();
        {
            const Scope scope(scratch_, random_.below(4));
            const unsigned steps = random_.below(12);
            for (unsigned i = 0; i < steps; ++i) step(depth);
            check_from(first);
        }
        blocks_.resize(first);
        ASSERT_EQ(scratch_.used(), used);
        ASSERT_EQ(scratch_.peak(), max_used_) << "after a scope at depth " << depth;
    }

    void reset() {
        check_from(0);
        scratch_.reset();
        blocks_.clear();
        ASSERT_EQ(scratch_.used(), 0U);
    }
    void allocate_outside() { allocate(); }

private:
    struct Block {
        std::byte* begin;
        std::size_t bytes;
        std::uint64_t mark;
    };

    /// A scope with or without a name.
    class Scope {
    public:
        Scope(Scratch& scratch, unsigned number)
            : scope_(number == 0
                         ? new ScratchScope(scratch)
                         : new ScratchScope(scratch, "ScratchModel." + std::to_string(number))) {}

    private:
        std::unique_ptr<ScratchScope> scope_;
    };

    void step(unsigned depth) {
        switch (random_.below(10)) {
            case 0:
            case 1:
                if (depth < 6) run_scope(depth + 1);
                return;
            case 2:
                return release();
            case 3:
                scratch_.trim();
                return;
            default:
                return allocate();
        }
    }

    void allocate() {
        const std::size_t bytes =
            random_.one_in(20) ? random_.below(8 * mib) + 1 : random_.log_uniform(1, 300 * kib);
        const std::size_t alignment = random_.one_in(4) ? std::size_t{1} << random_.below(18) : 1;
        const std::size_t used = scratch_.used();
        auto* const begin = static_cast<std::byte*>(scratch_.allocate(bytes, alignment));
        ASSERT_TRUE(is_aligned(begin, std::max<std::size_t>(alignment, 64)));
        const std::size_t size = (bytes + 63) / 64 * 64;
        ASSERT_GE(scratch_.used(), used + size);
        ASSERT_LE(scratch_.used(), used + size + std::max<std::size_t>(alignment, 64) - 64);
        for (const Block& other : blocks_) {
            ASSERT_TRUE(begin + bytes <= other.begin || other.begin + other.bytes <= begin);
        }
        blocks_.push_back({begin, bytes, ++marks_});
        Pattern(marks_).write(begin, bytes);
        max_used_ = std::max(max_used_, scratch_.used());
    }

    void release() {
        const Scratch::Mark mark = scratch_.mark();
        const std::size_t used = scratch_.used();
        const std::size_t first = blocks_.size();
        for (unsigned i = random_.below(4); i != 0; --i) allocate();
        check_from(first);
        scratch_.release_to(mark);
        blocks_.resize(first);
        ASSERT_EQ(scratch_.used(), used);
    }

    void check_from(std::size_t first) {
        for (std::size_t i = first; i < blocks_.size(); ++i) {
            const Block& one = blocks_[i];
            ASSERT_EQ(Pattern(one.mark).first_difference(one.begin, one.bytes, one.bytes),
                      one.bytes);
        }
    }

    Scratch& scratch_;
    Random random_;
    std::vector<Block> blocks_;
    std::uint64_t marks_ = 0;
    std::size_t max_used_ = 0;
};

TEST(ScratchModelTest, RandomScopesKeepTheirContent) {
    for (std::uint32_t seed = 1; seed != 9; ++seed) {
        in_new_thread([seed] {
            SCOPED_TRACE(seed);
            ScratchModel model(Scratch::local(), seed);
            for (unsigned round = 0; round < 100; ++round) {
                model.run_scope(0);
                if (round % 10 == 3) model.allocate_outside();
                if (round % 10 == 7) model.reset();
            }
            model.reset();
        });
    }
}

TEST(ScratchModelTest, RandomScopesOnConcurrentThreads) {
    for (std::uint32_t seed = 1; seed != 9; ++seed) {
        std::array<std::thread, 3> threads;
        for (std::uint32_t number = 0; number < threads.size(); ++number) {
            threads[number] = std::thread([seed, number] {
                SCOPED_TRACE(seed);
                ScratchModel model(Scratch::local(), seed * 100 + number);
                for (unsigned round = 0; round < 20; ++round) model.run_scope(0);
            });
        }
        for (std::thread& thread : threads) thread.join();
    }
}

}  // namespace
}  // namespace tensorpool
