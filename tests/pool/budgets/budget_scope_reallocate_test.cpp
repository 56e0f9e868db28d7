// `reallocate` of blocks that are charged to a budget, or become so.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>

namespace tensorpool {
namespace {

constexpr std::size_t kib = std::size_t{1} << 10;
constexpr std::size_t mib = std::size_t{1} << 20;

PoolOptions options_with(Checks checks) {
    PoolOptions options;
    options.name = "shared";
    options.checks = checks;
    options.quarantine_bytes = 0;
    return options;
}

class BudgetScopeReallocate : public ::testing::TestWithParam<Checks> {
protected:
    /// Runs `function` inside a scope of `budget`, or outside of any if it is nullptr.
    template <class Function>
    static auto inside(Budget* budget, Function function) {
        std::optional<BudgetScope> scope;
        if (budget != nullptr) scope.emplace(*budget);
        return function();
    }
    void* allocate(Budget* budget, std::size_t bytes) {
        return inside(budget, [&] { return pool_.allocate(bytes); });
    }
    void* reallocate(Budget* budget, void* block, std::size_t old_bytes, std::size_t bytes) {
        return inside(budget, [&] { return pool_.reallocate(block, old_bytes, bytes); });
    }
    /// What a budget is charged for a new block of this size.
    std::size_t charge_for(std::size_t bytes) {
        void* const block = inside(&measured_, [&] { return pool_.allocate(bytes); });
        const std::size_t charge = measured_.in_use();
        pool_.deallocate(block);
        return charge;
    }
    static void mark(void* block, std::size_t bytes, unsigned char mark) {
        std::memset(block, mark, std::min(bytes, kib));
        std::memset(static_cast<char*>(block) + bytes - 1, mark, 1);
    }
    static bool is_marked(const void* block, std::size_t bytes, unsigned char mark) {
        const auto* const begin = static_cast<const unsigned char*>(block);
        return std::all_of(begin, begin + std::min(bytes, kib),
                           [&](unsigned char byte) { return byte == mark; });
    }

    MemoryPool pool_{options_with(GetParam())};
    Budget process_{"process"};
    Budget request_{process_, "request"};
    Budget other_{"other"};
    Budget measured_{"measured"};
};

std::string name_of(const ::testing::TestParamInfo<Checks>& tested) {
    static constexpr const char* names[] = {"Off", "Basic", "Full", "Sampled", "Hardened"};
    return names[static_cast<unsigned>(tested.param)];
}
INSTANTIATE_TEST_SUITE_P(Levels, BudgetScopeReallocate,
                         ::testing::Values(Checks::off, Checks::basic, Checks::full,
                                           Checks::sampled, Checks::hardened),
                         name_of);

constexpr std::size_t sizes[] = {1,        64,       65,        1000,      1024, 5000,    60'000,
                                 64 * kib, 65 * kib, 100 * kib, 600 * kib, mib,  3 * mib, 9 * mib};

TEST_P(BudgetScopeReallocate, ChargesTheScopeLikeANewBlock) {
    for (const std::size_t from : sizes) {
        for (const std::size_t to : sizes) {
            for (Budget* const before : {static_cast<Budget*>(nullptr), &request_, &other_}) {
                for (Budget* const now : {static_cast<Budget*>(nullptr), &request_, &other_}) {
                    void* block = allocate(before, from);
                    mark(block, from, 7);
                    void* const old = block;
                    block = reallocate(now, block, from, to);
                    Budget* const charged = now == nullptr && block == old ? before : now;
                    // A large block of the right budget that shrinks in place keeps its pages.
                    const bool may_stay = charged == before && to < from;
                    for (Budget* const budget : {&request_, &other_}) {
                        const std::size_t expected = budget == charged ? charge_for(to) : 0;
                        const std::size_t charge = budget->in_use();
                        EXPECT_TRUE(charge == expected ||
                                    (budget == charged && may_stay && charge == charge_for(from)))
                            << from << " to " << to << ": " << charge << " B charged";
                    }
                    EXPECT_EQ(process_.in_use(), request_.in_use());
                    EXPECT_TRUE(is_marked(block, std::min(from, to), 7)) << from << " to " << to;
                    EXPECT_GE(pool_.usable_size(block), to);
                    pool_.deallocate(block);
                    ASSERT_EQ(process_.in_use() + other_.in_use(), 0U) << from << " to " << to;
                }
            }
        }
    }
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_P(BudgetScopeReallocate, RefusalLeavesTheBlockAndItsCharge) {
    Budget limited(process_, "limited", {.hard = 2 * mib});
    for (const std::size_t from : sizes) {
        if (from > mib) continue;
        for (const std::size_t to : {3 * mib, 40 * mib}) {
            for (Budget* const before : {static_cast<Budget*>(nullptr), &limited, &other_}) {
                void* const block = allocate(before, from);
                mark(block, from, 9);
                const std::size_t charge = limited.in_use();
                const std::size_t other_charge = other_.in_use();
                const std::size_t usable = pool_.usable_size(block);
                try {
                    (void)reallocate(&limited, block, from, to);
                    ADD_FAILURE() << from << " to " << to;
                } catch (const std::bad_alloc& error) {
                    EXPECT_NE(std::string(error.what()).find("refused by 'limited'"),
                              std::string::npos)
                        << error.what();
                }
                EXPECT_TRUE(is_marked(block, from, 9)) << from << " to " << to;
                EXPECT_EQ(pool_.usable_size(block), usable);
                EXPECT_EQ(limited.in_use(), charge) << from << " to " << to;
                EXPECT_EQ(other_.in_use(), other_charge) << from << " to " << to;
                pool_.deallocate(block, from);
                EXPECT_EQ(process_.in_use() + other_.in_use(), 0U);
            }
        }
    }
    EXPECT_LE(limited.statistics().peak_bytes, 2 * mib);
}

TEST_P(BudgetScopeReallocate, BlockOfTheScopesBudgetStaysInPlace) {
    if (GetParam() == Checks::hardened) GTEST_SKIP() << "every resize moves the block";
    void* const block = allocate(&request_, 1000);
    EXPECT_EQ(reallocate(&request_, block, 1000, 1020), block);
    EXPECT_EQ(request_.in_use(), 1024U);
    pool_.deallocate(block, 1020);
}

TEST_P(BudgetScopeReallocate, RefusesABlockOfOutsideThatWouldFitInPlace) {
    void* const large = pool_.allocate(4 * mib);
    void* const small = pool_.allocate(1000);
    {
        Budget full("full", {.hard = 512});
        const BudgetScope scope(full);
        EXPECT_THROW((void)pool_.reallocate(large, 4 * mib, 3 * mib), std::bad_alloc);
        EXPECT_THROW((void)pool_.reallocate(small, 1000, 600), std::bad_alloc);
        EXPECT_THROW((void)pool_.reallocate(small, 1000, 1000), std::bad_alloc);
        EXPECT_EQ(full.in_use(), 0U);
    }
    pool_.deallocate(large, 4 * mib);
    pool_.deallocate(small, 1000);
}

TEST_P(BudgetScopeReallocate, MovingOutsideOfAScopeEndsTheCharge) {
    for (const std::size_t from : {100UL, 5000UL, 100 * kib, 2 * mib}) {
        for (const std::size_t to : {200UL, 9000UL, 300 * kib, 5 * mib}) {
            void* const charged = allocate(&request_, from);
            void* block = charged;
            std::thread([&] { block = pool_.reallocate(block, from, to); }).join();
            // A block that became shorter where it is stays charged, with its new size.
            EXPECT_EQ(request_.in_use(), block == charged ? charge_for(to) : 0U);
            std::thread([&] { pool_.deallocate(block, to); }).join();
            EXPECT_EQ(request_.in_use(), 0U);
        }
    }
}

TEST_P(BudgetScopeReallocate, BlockThatOutlivesItsBudgetIsChargedToTheParent) {
    Budget parent("parent", {.hard = 8 * mib});
    std::optional<Budget> ended(std::in_place, parent, "ended", BudgetLimits{.hard = 2 * mib});
    void* block = allocate(&*ended, mib);
    ended.reset();
    EXPECT_EQ(parent.in_use(), charge_for(mib));
    block = reallocate(&parent, block, mib, 3 * mib);
    EXPECT_EQ(parent.in_use(), charge_for(3 * mib));
    EXPECT_THROW((void)reallocate(&parent, block, 3 * mib, 9 * mib), AllocationError);
    EXPECT_EQ(parent.in_use(), charge_for(3 * mib));
    pool_.deallocate(block, 3 * mib);
    EXPECT_EQ(parent.in_use(), 0U);
}

TEST_P(BudgetScopeReallocate, ScopeGoesOnAfterAResizeOfABlockOfAnotherBudget) {
    void* block = allocate(&other_, 5000);
    void* const outside = pool_.allocate(1000);
    EXPECT_EQ(other_.in_use(), charge_for(5000)) << "no scope is open";
    {
        const BudgetScope scope(request_);
        block = pool_.reallocate(block, 5000, 9000);
        EXPECT_EQ(other_.in_use(), 0U);
    }
    EXPECT_EQ(request_.in_use(), charge_for(9000));
    pool_.deallocate(outside, 1000);
    pool_.deallocate(block, 9000);
    EXPECT_EQ(request_.in_use(), 0U);
}

TEST_P(BudgetScopeReallocate, PoolsWithABudgetOfTheirOwnChargeThat) {
    PoolOptions options = options_with(GetParam());
    options.budget = &other_;
    MemoryPool pool(options);
    void* block = pool.allocate(1000);
    const BudgetScope scope(request_);
    for (const std::size_t bytes : {5000UL, 100 * kib, 2 * mib, 3 * mib, 4 * mib, 100UL}) {
        block = pool.reallocate(block, std::min(pool.usable_size(block), bytes), bytes);
        EXPECT_EQ(request_.in_use(), 0U);
        EXPECT_EQ(other_.in_use(), pool.get_total_capacity());
    }
    pool.deallocate(block, 100);
}

TEST_P(BudgetScopeReallocate, ZeroBytesAndNullFreeAndAllocate) {
    void* block = reallocate(&request_, nullptr, 0, 1000);
    EXPECT_EQ(request_.in_use(), charge_for(1000));
    EXPECT_EQ(reallocate(&other_, block, 1000, 0), nullptr);
    EXPECT_EQ(request_.in_use() + other_.in_use(), 0U);
}

TEST_P(BudgetScopeReallocate, RandomSequencesChargeWhatAModelExpects) {
    constexpr std::size_t limit = 6 * mib;
    struct Block {
        void* address = nullptr;
        std::size_t bytes = 0;
        std::size_t charged_to = 0;  // an index of `budgets`
        std::size_t charge = 0;
        unsigned char marked = 0;
    };
    const unsigned steps = GetParam() == Checks::off ? 3'000 : 1'000;
    for (unsigned seed = 0; seed != 4; ++seed) {
        std::mt19937 random(seed);
        Budget limited(process_, "limited", {.hard = limit});
        Budget below(limited, "below");
        const std::array<Budget*, 4> budgets = {nullptr, &limited, &below, &other_};
        std::vector<Block> blocks;
        const auto charged = [&](std::size_t to) {
            std::size_t sum = 0;
            for (const Block& block : blocks) sum += block.charged_to == to ? block.charge : 0;
            return sum;
        };
        const auto any_size = [&] {
            const std::size_t bits = 1 + random() % 21;
            return 1 + random() % (std::size_t{1} << bits);
        };
        for (unsigned step = 0; step != steps; ++step) {
            const std::size_t scope = random() % budgets.size();
            const unsigned what = random() % 8;
            if (blocks.empty() || what < 3) {
                Block made{.bytes = any_size(),
                           .charged_to = scope,
                           .marked = static_cast<unsigned char>(step)};
                made.address =
                    inside(budgets[scope], [&] { return pool_.try_allocate(made.bytes); });
                if (made.address != nullptr) {
                    made.charge = charge_for(made.bytes);
                    mark(made.address, made.bytes, made.marked);
                    blocks.push_back(made);
                }
            } else if (what < 5) {
                std::swap(blocks[random() % blocks.size()], blocks.back());
                inside(budgets[scope], [&] { pool_.deallocate(blocks.back().address); });
                blocks.pop_back();
            } else {
                Block& block = blocks[random() % blocks.size()];
                const std::size_t bytes = any_size();
                const bool is_limited = scope == 1 || scope == 2;
                const bool fits =
                    !is_limited || limited.in_use() + charge_for(bytes) <= limited.limits().hard;
                try {
                    void* const moved =
                        reallocate(budgets[scope], block.address, block.bytes, bytes);
                    const bool has_stayed =
                        moved == block.address && (scope == 0 || scope == block.charged_to);
                    const std::size_t to = has_stayed ? block.charged_to : scope;
                    EXPECT_TRUE(fits || has_stayed) << "seed " << seed << ", step " << step;
                    ASSERT_TRUE(is_marked(moved, std::min(bytes, block.bytes), block.marked))
                        << "seed " << seed << ", step " << step;
                    const bool is_shorter = bytes > 64 * kib && bytes < block.charge / 2;
                    if (!has_stayed || is_shorter) block.charge = charge_for(bytes);
                    block = {moved, bytes, to, block.charge, block.marked};
                    mark(moved, bytes, block.marked);
                } catch (const std::bad_alloc&) {
                    EXPECT_FALSE(fits) << "seed " << seed << ", step " << step;
                    ASSERT_TRUE(is_marked(block.address, block.bytes, block.marked));
                }
            }
            ASSERT_EQ(below.in_use(), charged(2)) << "seed " << seed << ", step " << step;
            ASSERT_EQ(limited.in_use(), charged(1) + charged(2)) << "seed " << seed;
            ASSERT_EQ(other_.in_use(), charged(3)) << "seed " << seed << ", step " << step;
        }
        EXPECT_LE(limited.statistics().peak_bytes, limit);
        for (const Block& block : blocks) pool_.deallocate(block.address);
        EXPECT_EQ(process_.in_use() + other_.in_use(), 0U);
    }
}

TEST_P(BudgetScopeReallocate, ManyThreadsNeverExceedTheLimit) {
    constexpr std::size_t limit = 4 * mib;
    Budget limited(process_, "limited", {.hard = limit});
    std::vector<std::thread> threads;
    for (unsigned number = 0; number != 4; ++number) {
        threads.emplace_back([&, number] {
            std::mt19937 random(number);
            std::vector<std::pair<void*, std::size_t>> blocks;
            for (int step = 0; step != 800; ++step) {
                std::optional<BudgetScope> scope;
                if (random() % 2 == 0) scope.emplace(random() % 4 == 0 ? other_ : limited);
                const std::size_t bytes = 1 + random() % (random() % 4 == 0 ? 900'000 : 9'000);
                if (blocks.size() < 12) {
                    if (void* const block = pool_.try_allocate(bytes))
                        blocks.emplace_back(block, bytes);
                    continue;
                }
                auto& [block, size] = blocks[random() % blocks.size()];
                try {
                    block = pool_.reallocate(block, size, bytes);
                    size = bytes;
                } catch (const std::bad_alloc&) {
                    pool_.deallocate(block, size);
                    block = nullptr;
                    size = 0;
                }
                if (block == nullptr)
                    blocks.erase(
                        std::ranges::find(blocks, nullptr, [](auto& one) { return one.first; }));
            }
            for (const auto& [block, size] : blocks) pool_.deallocate(block, size);
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(limited.statistics().peak_bytes, limit);
    EXPECT_EQ(process_.in_use() + other_.in_use(), 0U);
}

}  // namespace
}  // namespace tensorpool
