// A process for the page: `page_waves NAME…` makes a pool of each name, the first with a limit.
// Their blocks come and go in waves, each pool on a thread of its own. It also has an allocator of
// device memory, and an arena that serves a plan. Prints "ready" when all exist, and works until
// its standard input ends.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/tensorpool.hpp>

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t limit = 192 * mebibyte;

tensorpool::PoolOptions options_of(const char* name, bool limited) {
    tensorpool::PoolOptions options;
    options.name = name;
    if (limited) options.max_capacity = limit;
    return options;
}

/// Blocks of all sizes up to 1 MiB, whose number rises and falls.
class Wave {
public:
    Wave(const char* name, bool limited, std::size_t crest)
        : pool_(options_of(name, limited)), crest_(crest) {
        tensorpool::ArenaOptions options;
        options.name = std::string(name) + " batch";
        options.max_capacity = 64 * mebibyte;
        arena_.emplace(options);
    }
    ~Wave() {
        while (!blocks_.empty()) fall();
    }

    void step() {
        const tensorpool::ArenaScope phase(*arena_);
        arena_->allocate(mebibyte + in_use_ / 16);
        if (rises_) {
            const tensorpool::StatisticsScope scope("rise");
            for (int i = 0; i < 60; ++i) rise();
        } else {
            const tensorpool::StatisticsScope scope("fall");
            for (int i = 0; i < 60 && !blocks_.empty(); ++i) fall();
        }
        churn();
        if (rises_ ? in_use_ >= crest_ : in_use_ <= crest_ / 4) turn();
    }

private:
    struct Block {
        void* at;
        std::size_t bytes;
    };

    /// The same sequence of sizes in each run; most are small.
    std::size_t next_size() {
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        const std::size_t largest = std::size_t{64} << ((state_ >> 40) % 15);
        return 1 + (state_ >> 33) % largest;
    }
    /// Touches the pages, as a program that uses its blocks does.
    static void* touched(void* block, std::size_t bytes) {
        for (std::size_t at = 0; at < bytes; at += 4096) static_cast<char*>(block)[at] = 1;
        return block;
    }
    void rise() {
        const std::size_t bytes = next_size();
        blocks_.push_back({touched(pool_.allocate(bytes), bytes), bytes});
        in_use_ += bytes;
    }
    void fall() {
        in_use_ -= blocks_.back().bytes;
        pool_.deallocate(blocks_.back().at);
        blocks_.pop_back();
    }
    void churn() {
        for (int i = 0; i < 2000; ++i) pool_.deallocate(pool_.allocate(next_size() % 4096 + 1));
    }
    void turn() {
        tensorpool::mark_timeline(rises_ ? "crest" : "trough", in_use_);
        // Exceeds the limit; without a limit, the request succeeds.
        if (rises_) pool_.deallocate(pool_.try_allocate(limit + mebibyte));
        rises_ = !rises_;
    }

    tensorpool::MemoryPool pool_;
    std::optional<tensorpool::Arena> arena_;
    std::vector<Block> blocks_;
    std::size_t crest_;
    std::size_t in_use_ = 0;
    std::uint64_t state_ = 42;
    bool rises_ = true;
};

void work(const char* name, bool limited, std::size_t crest, const std::atomic<bool>& goes_on,
          std::latch& begun) {
    Wave wave(name, limited, crest);
    wave.step();
    begun.count_down();
    while (goes_on) {
        wave.step();
        // Leaves processor time for others.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

/// The same requests in each iteration, except now and then: activations that live until the
/// backward pass, and temporaries.
class Steps {
public:
    void step() {
        const tensorpool::IterationScope iteration(arena_);
        std::vector<void*> activations;
        for (std::size_t layer = 1; layer <= 24; ++layer) {
            activations.push_back(arena_.allocate(layer * 70'000));
            void* const moment = arena_.allocate(mebibyte - layer * 20'000);
            void* const more = arena_.allocate(layer % 3 * 150'000 + 64);
            arena_.deallocate(moment);
            arena_.deallocate(more);
        }
        while (!activations.empty()) {
            void* const gradient = arena_.allocate(activations.size() * 90'000);
            arena_.deallocate(activations.back());
            activations.pop_back();
            arena_.deallocate(gradient);
        }
        if (++count_ % 64 == 0) arena_.deallocate(arena_.allocate(2 * mebibyte));
    }

private:
    static tensorpool::PlannedArenaOptions named(const char* name) {
        tensorpool::PlannedArenaOptions options;
        options.name = name;
        return options;
    }

    tensorpool::PlannedArena arena_{named("step")};
    unsigned count_ = 0;
};

void step_until(const std::atomic<bool>& goes_on, std::latch& begun) {
    Steps steps;
    for (int i = 0; i < 3; ++i) steps.step();
    begun.count_down();
    while (goes_on) {
        steps.step();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

}  // namespace

int main(int count, char** names) {
    std::atomic<bool> goes_on = true;
    std::latch begun(count);
    std::vector<std::thread> threads;
    for (int i = 1; i < count; ++i) {
        threads.emplace_back(work, names[i], i == 1, 96 * mebibyte / static_cast<unsigned>(i),
                             std::cref(goes_on), std::ref(begun));
    }
    threads.emplace_back(step_until, std::cref(goes_on), std::ref(begun));
    tensorpool::HostBackend backend;
    tensorpool::CachingAllocator device(backend, 0);
    void* const held = device.allocate(5 * mebibyte);
    begun.wait();
    std::puts("ready");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    goes_on = false;
    device.deallocate(held);
    for (std::thread& thread : threads) thread.join();
}
