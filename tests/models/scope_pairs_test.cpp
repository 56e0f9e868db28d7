// Every pair of kinds of scopes, one in the other: both have their effect inside, and none
// afterwards, also if the outer one ends first where the guide allows it
// (include/tensorpool/README.md#how-scopes-nest).

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tensorpool/arena.hpp>
#include <tensorpool/budget.hpp>
#include <tensorpool/context.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/scratch.hpp>
#include <tensorpool/serve_scope.hpp>
#include <tensorpool/statistics_scope.hpp>

namespace tensorpool {
namespace {

constexpr std::size_t large = 100'000;

/// A scope of one kind, and whether it has its effect now.
class Kind {
public:
    virtual ~Kind() = default;
    virtual void begin() = 0;
    virtual void end() = 0;
    virtual bool works() = 0;
};

class OfStatistics final : public Kind {
public:
    void begin() override { scope_ = std::make_unique<StatisticsScope>("pair"); }
    void end() override { scope_.reset(); }
    bool works() override {
        if (scope_ == nullptr) return false;
        const std::uint64_t before = scope_->statistics().allocations;
        pool_.deallocate(pool_.allocate(100));
        return scope_->statistics().allocations == before + 1;
    }

private:
    MemoryPool pool_;
    std::unique_ptr<StatisticsScope> scope_;
};

class OfABudget final : public Kind {
public:
    void begin() override { scope_.emplace(budget_); }
    void end() override { scope_.reset(); }
    bool works() override {
        const std::size_t before = budget_.in_use();
        const PooledAllocation block(pool_, large);
        return budget_.in_use() > before;
    }

private:
    Budget budget_{"pair"};
    MemoryPool pool_;
    std::optional<BudgetScope> scope_;
};

class OfAServedLoop final : public Kind {
public:
    OfAServedLoop() {
        const ServeScope learned(arena_);
        for (int i = 0; i < 8; ++i) const PooledAllocation block(large);
    }
    void begin() override { scope_ = std::make_unique<ServeScope>(arena_); }
    void end() override { scope_.reset(); }
    bool works() override {
        const std::uint64_t before = arena_.statistics().served;
        const PooledAllocation block(large);
        return arena_.statistics().served == before + 1;
    }

private:
    PlannedArena arena_;
    std::unique_ptr<ServeScope> scope_;
};

class OfAPlannedIteration final : public Kind {
public:
    OfAPlannedIteration() {
        const IterationScope learned(arena_);
        for (int i = 0; i < 8; ++i) const PooledAllocation block(arena_, large);
    }
    void begin() override { scope_.emplace(arena_); }
    void end() override { scope_.reset(); }
    bool works() override {
        const std::uint64_t before = arena_.statistics().served;
        const PooledAllocation block(arena_, large);
        return arena_.statistics().served == before + 1;
    }

private:
    MemoryPool pool_;
    PlannedArena arena_{{.pool = &pool_}};
    std::optional<IterationScope> scope_;
};

class OfAScratch final : public Kind {
public:
    void begin() override {
        before_ = Scratch::local().used();
        scope_.emplace();
        Scratch::local().allocate(100);
    }
    void end() override {
        scope_.reset();
        EXPECT_EQ(Scratch::local().used(), before_);
    }
    bool works() override { return Scratch::local().used() > before_; }

private:
    std::size_t before_ = 0;
    std::optional<ScratchScope> scope_;
};

class OfAContextsAllocations final : public Kind {
public:
    void begin() override { scope_.emplace(context_); }
    void end() override { scope_.reset(); }
    bool works() override {
        const std::size_t before = context_.scratch_used();
        const PooledAllocation block(context_, 100);
        return context_.scratch_used() > before;
    }

private:
    Context context_;
    std::optional<ScratchAllocationScope> scope_;
};

class OfAnArena final : public Kind {
public:
    void begin() override {
        scope_.emplace(arena_);
        (void)arena_.allocate(100);
    }
    void end() override { scope_.reset(); }
    bool works() override { return arena_.used() != 0; }

private:
    Arena arena_;
    std::optional<ArenaScope> scope_;
};

template <class Of>
std::unique_ptr<Kind> made() {
    return std::make_unique<Of>();
}
struct Named {
    std::string name;
    std::unique_ptr<Kind> (*make)();
};
const Named kinds[] = {
    {"StatisticsScope", made<OfStatistics>},
    {"BudgetScope", made<OfABudget>},
    {"ServeScope", made<OfAServedLoop>},
    {"IterationScope", made<OfAPlannedIteration>},
    {"ScratchScope", made<OfAScratch>},
    {"ScratchAllocationScope", made<OfAContextsAllocations>},
    {"ArenaScope", made<OfAnArena>},
};

// Of these only the innermost one has an effect. And what a budget pays for is no part of an
// iteration that began outside of its scope.
bool hides(const Named& outer, const Named& inner) {
    const bool is_one_alone = inner.name == "BudgetScope" || inner.name == "ServeScope";
    return is_one_alone && (outer.name == inner.name || outer.name == "ServeScope");
}
bool is_of_scratch(const Named& kind) {
    return kind.name == "ScratchScope" || kind.name == "ScratchAllocationScope";
}

TEST(ScopePairs, NestInEachOther) {
    for (const Named& outer : kinds) {
        for (const Named& inner : kinds) {
            SCOPED_TRACE(outer.name + " around " + inner.name);
            const std::unique_ptr<Kind> one = outer.make();
            const std::unique_ptr<Kind> other = inner.make();
            one->begin();
            EXPECT_TRUE(one->works());
            other->begin();
            EXPECT_TRUE(other->works());
            EXPECT_EQ(one->works(), !hides(outer, inner));
            other->end();
            EXPECT_FALSE(other->works());
            EXPECT_TRUE(one->works());
            one->end();
            EXPECT_FALSE(one->works());
        }
    }
}

TEST(ScopePairs, OfDifferentKindsEndInAnyOrder) {
    for (const Named& first : kinds) {
        for (const Named& second : kinds) {
            if (first.name == second.name || (is_of_scratch(first) && is_of_scratch(second)))
                continue;
            SCOPED_TRACE(first.name + " ends before " + second.name);
            const std::unique_ptr<Kind> one = first.make();
            const std::unique_ptr<Kind> other = second.make();
            one->begin();
            other->begin();
            one->end();
            EXPECT_FALSE(one->works());
            EXPECT_TRUE(other->works());
            other->end();
            EXPECT_FALSE(other->works());
        }
    }
}

}  // namespace
}  // namespace tensorpool
