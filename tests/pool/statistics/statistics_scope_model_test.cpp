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
    Sums operator-(const Sums& less) const {
        return {allocations - less.allocations, deallocations - less.deallocations,
                requested - less.requested, allocated - less.allocated,
                deallocated - less.deallocated};
    }
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
        Sums begin;  // later by what passed while it was paused
        std::unique_ptr<StatisticsScope> scope;
        std::int64_t highest = 0;  // growth
        bool is_paused = false;
        Sums counted = {};  // before the pause
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
        } else if (choice < 90) {
            begin_scope();
        } else if (choice < 93) {
            pause_or_resume();
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
            for (Open& open : open_) {
                if (!open.is_paused) open.highest = std::max(open.highest, counted_by(open).net());
            }
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
        open_.push_back({name, now_, std::make_unique<StatisticsScope>(name)});
    }

    Sums counted_by(const Open& open) const {
        return open.is_paused ? open.counted : now_ - open.begin;
    }

    std::list<Open>::iterator any_scope() {
        return std::next(open_.begin(), below(static_cast<unsigned>(open_.size())));
    }

    // One that goes on is the innermost.
    void pause_or_resume() {
        if (open_.empty()) return;
        const auto at = any_scope();
        if (at->is_paused) {
            at->begin = now_ - at->counted;
            at->scope->resume();
            open_.splice(open_.end(), open_, at);
        } else {
            at->counted = counted_by(*at);
            at->scope->pause();
        }
        at->is_paused = !at->is_paused;
    }

    // Usually the innermost.
    void end_scope() {
        if (open_.empty()) return;
        const auto at = below(4) == 0 ? any_scope() : std::prev(open_.end());
        const Sums counted = counted_by(*at);
        const ScopeGrowth growth = at->scope->growth();
        EXPECT_EQ(growth.bytes, counted.net());
        Expected& sums = expected_[at->name];
        const bool is_in_order =
            at->is_paused || std::all_of(std::next(at), open_.end(),
                                         [](const Open& inner) { return inner.is_paused; });
        sums.out_of_order += is_in_order ? 0 : 1;
        add(sums, counted);
        sums.true_peak = std::max(sums.true_peak, at->highest);
        sums.growth_at_end = std::max(sums.growth_at_end, growth.bytes);
        open_.erase(at);
    }

    static void add(Expected& sums, const Sums& counted) {
        ++sums.calls;
        sums.allocations += counted.allocations;
        sums.deallocations += counted.deallocations;
        sums.requested += counted.requested;
        sums.allocated += counted.allocated;
        sums.deallocated += counted.deallocated;
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
