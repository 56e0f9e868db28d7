// A model test: random scopes around random calls to pools that are made and destroyed, compared
// with sums that the test counts itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_scope.hpp>

#include "statistics/fake_counters.hpp"

namespace tensorpool {
namespace {

/// The model's sums for one thread.
struct Sums {
    std::uint64_t allocations = 0;
    std::uint64_t deallocations = 0;
    std::uint64_t requested = 0;
    std::uint64_t allocated = 0;
    std::uint64_t deallocated = 0;

    std::int64_t net() const { return static_cast<std::int64_t>(allocated - deallocated); }
};

struct Expected : Sums {
    std::uint64_t calls = 0;
    std::uint64_t out_of_order = 0;
    std::int64_t true_peak = 0;
    std::int64_t growth_at_end = 0;  // the maximum
};

class ScopeModel {
public:
    void run(unsigned seed, unsigned steps) {
        random_.seed(seed);
        for (unsigned i = 0; i < steps; ++i) step();
        while (!blocks_.empty()) free_block();
        while (!open_.empty()) end_scope();
        check();
    }

private:
    struct Open {
        std::string name;
        Sums begin;
        std::int64_t highest;
        std::unique_ptr<StatisticsScope> scope;
    };
    struct Block {
        MemoryPool* pool;
        void* address;
        std::size_t bytes, usable;
    };

    unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }

    void step() {
        const unsigned choice = below(100);
        if (choice < 45) {
            allocate();
        } else if (choice < 85) {
            free_block();
        } else if (choice < 91) {
            begin_scope();
        } else if (choice < 97) {
            end_scope();
        } else if (choice < 99 && pools_.size() < 6) {
            pools_.push_back(std::make_unique<MemoryPool>(PoolOptions{.checks = Checks(below(3))}));
        } else {
            destroy_pool();
        }
    }

    void allocate() {
        if (pools_.empty()) return;
        MemoryPool& pool = *pools_[below(static_cast<unsigned>(pools_.size()))];
        const std::size_t bytes = std::size_t{1} << below(19) | below(64);
        for (unsigned i = below(40); i != 0; --i) {
            void* const address = pool.allocate(bytes);
            const std::size_t usable = pool.usable_size(address);
            blocks_.push_back({&pool, address, bytes, usable});
            ++now_.allocations;
            now_.requested += bytes;
            now_.allocated += usable;
            for (Open& open : open_) open.highest = std::max(open.highest, now_.net());
        }
    }

    void free_block() {
        for (unsigned i = below(40) + 1; i != 0 && !blocks_.empty(); --i) {
            const auto at = blocks_.begin() + below(static_cast<unsigned>(blocks_.size()));
            const Block block = *at;
            *at = blocks_.back();
            blocks_.pop_back();
            give_back(block);
        }
    }

    void give_back(const Block& block) {
        if (below(2) == 0) {
            block.pool->deallocate(block.address, block.bytes);
        } else {
            block.pool->deallocate(block.address);
        }
        ++now_.deallocations;
        now_.deallocated += block.usable;
    }

    void destroy_pool() {
        if (pools_.empty()) return;
        const auto at = pools_.begin() + below(static_cast<unsigned>(pools_.size()));
        for (const Block& block : blocks_) {
            if (block.pool == at->get()) give_back(block);
        }
        std::erase_if(blocks_, [&](const Block& block) { return block.pool == at->get(); });
        pools_.erase(at);
    }

    void begin_scope() {
        const std::string name = std::string("model ") + static_cast<char>('a' + below(5));
        open_.push_back({name, now_, now_.net(), std::make_unique<StatisticsScope>(name)});
    }

    // Usually the innermost.
    void end_scope() {
        if (open_.empty()) return;
        auto at = std::prev(open_.end());
        if (below(4) == 0)
            at = std::next(open_.begin(), below(static_cast<unsigned>(open_.size())));
        const ScopeGrowth growth = at->scope->growth();
        EXPECT_EQ(growth.bytes, now_.net() - at->begin.net());
        Expected& sums = expected_[at->name];
        sums.out_of_order += std::next(at) == open_.end() ? 0 : 1;
        add(sums, at->begin);
        sums.true_peak = std::max(sums.true_peak, at->highest - at->begin.net());
        sums.growth_at_end = std::max(sums.growth_at_end, growth.bytes);
        open_.erase(at);
    }

    void add(Expected& sums, const Sums& begin) const {
        ++sums.calls;
        sums.allocations += now_.allocations - begin.allocations;
        sums.deallocations += now_.deallocations - begin.deallocations;
        sums.requested += now_.requested - begin.requested;
        sums.allocated += now_.allocated - begin.allocated;
        sums.deallocated += now_.deallocated - begin.deallocated;
    }

    void check() const {
        for (const auto& [name, sums] : expected_) {
            const ScopeStatistics values = testing::statistics_of_scope(name);
            EXPECT_EQ(values.calls, sums.calls) << name;
            EXPECT_EQ(values.open, 0U) << name;
            EXPECT_EQ(values.out_of_order, sums.out_of_order) << name;
            EXPECT_EQ(values.allocations, sums.allocations) << name;
            EXPECT_EQ(values.deallocations, sums.deallocations) << name;
            EXPECT_EQ(values.requested_bytes, sums.requested) << name;
            EXPECT_EQ(values.allocated_bytes, sums.allocated) << name;
            EXPECT_EQ(values.deallocated_bytes, sums.deallocated) << name;
            const auto peak = static_cast<std::int64_t>(values.peak_bytes);
            EXPECT_LE(peak, sums.true_peak) << name;
            EXPECT_GE(peak, sums.growth_at_end) << name;
        }
    }

    std::mt19937 random_;
    std::vector<std::unique_ptr<MemoryPool>> pools_;
    std::vector<Block> blocks_;
    std::list<Open> open_;  // the innermost last
    Sums now_;
    std::map<std::string, Expected> expected_;
};

TEST(StatisticsScopeModel, RandomScopesMatchTheModel) {
    ScopeModel model;
    for (unsigned seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE(seed);
        model.run(seed, 3000);
        if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace tensorpool
