// A process to be read: a pool with a limit and one without, scopes, an arena and a scratch, an
// allocator of device memory, and a planned arena. It works continuously, and now and then requests
// more than a limit allows. Prints "ready" and works until its standard input ends.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/tensorpool.hpp>

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

void forward(tensorpool::MemoryPool& pool, std::vector<void*>& kept) {
    const tensorpool::StatisticsScope scope("forward");
    std::vector<void*> blocks;
    for (std::size_t bytes = 100; bytes < 300'000; bytes += bytes / 3) {
        blocks.push_back(pool.allocate(bytes));
    }
    for (void* block : blocks) pool.deallocate(block);
    if (kept.size() < 1000) kept.push_back(pool.allocate(1000));
}

void one_step(tensorpool::PlannedArena& planned) {
    const tensorpool::IterationScope iteration(planned);
    void* const first = planned.allocate(mebibyte);
    void* const second = planned.allocate(2 * mebibyte);
    planned.deallocate(first);
    void* const third = planned.allocate(mebibyte);
    planned.deallocate(second);
    planned.deallocate(third);
}

void one_round(tensorpool::MemoryPool& limited, tensorpool::MemoryPool& free,
               tensorpool::Arena& arena, tensorpool::CachingAllocator& device,
               tensorpool::PlannedArena& planned, std::vector<void*>& kept) {
    forward(limited, kept);
    one_step(planned);
    free.deallocate(free.allocate(5000));
    device.deallocate(device.allocate(mebibyte));
    const tensorpool::ArenaScope phase(arena);
    arena.allocate(mebibyte);
    // More than the limit allows.
    limited.try_allocate(128 * mebibyte);
    arena.try_allocate(128 * mebibyte);
    limited.trim();
}

}  // namespace

int main() {
    tensorpool::PoolOptions options;
    options.name = "limited";
    options.max_capacity = 64 * mebibyte;
    tensorpool::MemoryPool limited(options);
    tensorpool::MemoryPool free;
    tensorpool::ArenaOptions arena_options;
    arena_options.name = "phase";
    arena_options.max_capacity = 16 * mebibyte;
    tensorpool::Arena arena(arena_options);

    tensorpool::HostBackend backend;
    tensorpool::CachingOptions device_options;
    device_options.name = "device";
    device_options.hard_limit = 0.5;
    tensorpool::CachingAllocator device(backend, 0, device_options);

    tensorpool::PlannedArena planned({.name = "step"});

    std::atomic<bool> goes_on = true;
    std::vector<void*> kept;
    one_round(limited, free, arena, device, planned, kept);
    std::puts("ready");
    std::fflush(stdout);
    std::thread worker([&] {
        while (goes_on) {
            one_round(limited, free, arena, device, planned, kept);
            // Leaves processor time for others.
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    });
    while (std::getchar() != EOF) {
    }
    goes_on = false;
    worker.join();
    for (void* block : kept) limited.deallocate(block);
}
