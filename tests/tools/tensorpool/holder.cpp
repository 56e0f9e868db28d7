/// @file
/// A process to be read: has pools, an arena, a device allocator and a scope, prints "ready", and
/// executes the lines of its standard input until it ends.

#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
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
    void drop() {
        for (void* const block : held_) first_.deallocate(block, block_bytes);
        held_.clear();
    }

private:
    static tensorpool::PoolOptions named(const char* name) {
        tensorpool::PoolOptions options;
        options.name = name;
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
        if (order == "drop") holder.drop();
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
