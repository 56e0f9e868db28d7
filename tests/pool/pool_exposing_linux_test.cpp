// A thread inside a scope is stopped at each instruction of a call, while another thread takes back
// the blocks that the first one's cache exposes. The charge must be that of the blocks in use, and
// no block may be handed out twice.

#ifdef __x86_64__

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>

#include "limits/budget_node.hpp"
#include "platform/tools/memory_tools.hpp"
#include "support/child_process.hpp"
#include "support/counted_call_linux.hpp"
#include "support/process_metrics.hpp"
#include "support/stopped_thread_linux.hpp"

namespace tensorpool {
namespace {

using testing::StoppedThread;

constexpr std::size_t bytes = 1024;

enum class Call { allocate, deallocate };

class StoppedInScope {
public:
    explicit StoppedInScope(Call call) : call_(call) {}

    /// Returns the number of instructions of the call.
    unsigned instructions() {
        unsigned all = 0;
        std::thread([&] {
            prepare();
            all = testing::count_call([&] { make_call(); }).instructions;
        }).join();
        return all;
    }

    bool keeps_the_charge(unsigned instructions) {
        StoppedThread::stop(
            instructions, [&] { prepare(); }, [&] { make_call(); },
            [&] {
                pool_.trim();
                pool_.trim();
            });
        const std::set<void*> held(held_.begin(), held_.end());
        bool is_right = held.size() == held_.size() && charge_is_that_of(held.size());
        std::set<void*> others = held;
        for (int i = 0; i != 64; ++i)
            is_right = others.insert(pool_.allocate(bytes)).second && is_right;
        for (void* const block : others) pool_.deallocate(block, bytes);
        return is_right && charge_is_that_of(0) && pool_.get_total_allocated() == 0;
    }

private:
    // The scope lasts until the thread ends, which conceals what it left.
    void prepare() {
        limits::change_scope(BudgetAccess::node_of(&budget_));
        for (int i = 0; i < 10; ++i) held_.push_back(pool_.allocate(bytes));
        for (int i = 0; i < 4; ++i) {
            pool_.deallocate(held_.back(), bytes);
            held_.pop_back();
        }
        held_.reserve(held_.size() + 1);
    }

    void make_call() {
        if (call_ == Call::allocate) {
            held_.push_back(pool_.allocate(bytes));
        } else {
            pool_.deallocate(held_.back(), bytes);
            held_.pop_back();
        }
    }

    bool charge_is_that_of(std::size_t blocks) const { return budget_.in_use() == blocks * bytes; }

    const Call call_;
    Budget budget_{"request"};
    MemoryPool pool_{PoolOptions{.name = "exposing", .checks = Checks::off}};
    std::vector<void*> held_;
};

class StoppedInScopeCall : public ::testing::TestWithParam<Call> {};

INSTANTIATE_TEST_SUITE_P(Call, StoppedInScopeCall,
                         ::testing::Values(Call::allocate, Call::deallocate), [](const auto& call) {
                             return call.param == Call::allocate ? "allocate" : "deallocate";
                         });

TEST_P(StoppedInScopeCall, TakingBackLeavesTheChargeOfTheBlocksInUse) {
    if (testing::sanitized()) GTEST_SKIP() << "sanitizers add too many instructions";
    if (platform::has_memory_tool()) GTEST_SKIP() << "inline paths find no cache";
    EXPECT_TRUE(testing::holds_in_child([] {
        const unsigned all = StoppedInScope(GetParam()).instructions();
        // Sets up the process for `stop`.
        StoppedThread::instructions_of([] {});
        for (unsigned instructions = 1; instructions <= all; ++instructions) {
            if (!StoppedInScope(GetParam()).keeps_the_charge(instructions)) return false;
        }
        return all > 10;
    }));
}

}  // namespace
}  // namespace tensorpool

#endif
