/// @file
/// A process to be read: has pools, an arena, a device allocator and a scope, prints "ready", and
/// executes the lines of its standard input until it ends.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <latch>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/statistics_scope.hpp>
#include <tensorpool/tensorpool.hpp>
#include <tensorpool/timeline.hpp>

namespace {

constexpr std::size_t block_bytes = 1000;
constexpr std::size_t large_bytes = 8u << 20;
constexpr std::size_t device_bytes = 3u << 20;
constexpr std::size_t global_bytes = 32u << 20;

/// Leaves the global pool with free memory of every kind: large blocks in the cache, blocks parked
/// by an idle thread, and small ones of several sizes beside blocks in use.
class Fragments {
public:
    Fragments() {
        for (const std::size_t bytes : {64u, 1000u, 6000u}) leave_some(bytes);
        keep_large();
        idle_ = std::thread([this] {
            for (const std::size_t bytes : {std::size_t{200}, std::size_t{400} << 10}) {
                free_all(allocate(bytes, 8u << 20), bytes);
            }
            parked_.count_down();
            end_.wait();
        });
        parked_.wait();
    }
    ~Fragments() {
        end_.count_down();
        idle_.join();
    }
    Fragments(const Fragments&) = delete;
    Fragments& operator=(const Fragments&) = delete;

private:
    static std::vector<void*> allocate(std::size_t bytes, std::size_t all_bytes) {
        std::vector<void*> blocks(all_bytes / bytes);
        for (void*& block : blocks) {
            block = tensorpool::get_global_memory_pool().allocate(bytes);
            std::memset(block, 1, bytes);
        }
        return blocks;
    }
    static void free_all(const std::vector<void*>& blocks, std::size_t bytes) {
        for (void* const block : blocks) {
            tensorpool::get_global_memory_pool().deallocate(block, bytes);
        }
    }
    /// Leaves a tenth of the blocks, which lie at random in the second half.
    static void leave_some(std::size_t bytes) {
        std::vector<void*> blocks = allocate(bytes, 16u << 20);
        std::mt19937 random;
        std::shuffle(blocks.begin() + static_cast<std::ptrdiff_t>(blocks.size() / 2), blocks.end(),
                     random);
        blocks.resize(blocks.size() - blocks.size() / 10);
        free_all(blocks, bytes);
    }
    static void keep_large() { free_all(allocate(2u << 20, 16u << 20), 2u << 20); }

    std::latch parked_{1};
    std::latch end_{1};
    std::thread idle_;
};

class Holder {
public:
    Holder() : first_(named("first")), second_(named("second")), arena_(arena_named("phases")) {
        hold(1000);
        large_ = second_.allocate(large_bytes);
        static_cast<void>(arena_.allocate(5000));
        device_block_ = device_.allocate(device_bytes);
        tensorpool::StatisticsScope scope("forward");
        void* const block = first_.allocate(200);
        first_.deallocate(block, 200);
        tensorpool::mark_timeline("made");
    }
    ~Holder() {
        for (void* const block : held_) first_.deallocate(block, block_bytes);
        second_.deallocate(large_, large_bytes);
        device_.deallocate(device_block_);
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

    void hold(unsigned count) {
        for (unsigned i = 0; i < count; ++i) held_.push_back(first_.allocate(block_bytes));
    }
    /// Makes an arena whose plan has served one iteration.
    void plan() {
        tensorpool::PlannedArenaOptions options;
        options.name = "step";
        planned_.emplace(std::move(options));
        for (int i = 0; i < 2; ++i) {
            const tensorpool::IterationScope iteration(*planned_);
            void* const one = planned_->allocate(2u << 20);
            planned_->deallocate(one);
            void* const other = planned_->allocate(3u << 20);
            planned_->deallocate(other);
        }
    }
    /// Makes two budgets, to the lower one of which an arena is charged.
    void budget() {
        budgets_.emplace_back("process");
        budgets_.emplace_back(budgets_.front(), "phases",
                              tensorpool::BudgetLimits{.hard = 8u << 20});
        tensorpool::ArenaOptions options = arena_named("charged");
        options.initial_capacity = 0;
        options.growth = {.step = 0, .factor = 0};
        options.budget = &budgets_.back();
        charged_.emplace(std::move(options));
        (void)charged_->allocate(6u << 20);
        (void)charged_->try_allocate(3u << 20);
    }
    void fragment() { fragments_.emplace(); }
    void drop() {
        for (void* const block : held_) first_.deallocate(block, block_bytes);
        held_.clear();
    }

private:
    static tensorpool::PoolOptions named(const char* name) {
        tensorpool::PoolOptions options;
        options.name = name;
        // With checks, the default for debugging, there are no samples.
        options.checks = tensorpool::Checks::off;
        return options;
    }
    static tensorpool::CachingOptions device_named(const char* name) {
        tensorpool::CachingOptions options;
        options.name = name;
        return options;
    }
    static tensorpool::ArenaOptions arena_named(const char* name) {
        tensorpool::ArenaOptions options;
        options.name = name;
        return options;
    }

    tensorpool::MemoryPool first_;
    tensorpool::MemoryPool second_;
    tensorpool::Arena arena_;
    tensorpool::HostBackend backend_;
    tensorpool::CachingAllocator device_{backend_, 0, device_named("activations")};
    void* device_block_ = nullptr;
    std::optional<tensorpool::PlannedArena> planned_;
    std::list<tensorpool::Budget> budgets_;
    std::optional<tensorpool::Arena> charged_;
    std::optional<Fragments> fragments_;
    std::vector<void*> held_;
    void* large_ = nullptr;
};

}  // namespace

int main() {
    Holder holder;
    std::cout << "ready" << std::endl;
    for (std::string order; std::getline(std::cin, order);) {
        if (order == "hold") holder.hold(10'000);
        if (order == "plan") holder.plan();
        if (order == "budget") holder.budget();
        if (order == "drop") holder.drop();
        if (order == "fragment") holder.fragment();
        if (order == "global") {
            tensorpool::MemoryPool& pool = tensorpool::get_global_memory_pool();
            void* const block = pool.allocate(global_bytes);
            std::memset(block, 1, global_bytes);
            pool.deallocate(block, global_bytes);
        }
        if (order.starts_with("mark ")) tensorpool::mark_timeline(order.substr(5));
        std::cout << "done" << std::endl;
    }
}
