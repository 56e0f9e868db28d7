/// Question: how much memory does a process hold, beyond the blocks in use, after a scenario?
///
/// `holding_perf [SCENARIO] [--quick] [--later]` prints one line of JSON for each scenario, in
/// bytes: the peak and the final amount in use; and resident memory beyond the program itself: at
/// the peak, at the end, and after the allocator was requested to release what is free. With
/// --later the process sleeps 11 seconds at the end, and `later` is resident memory after that.
/// Without a scenario, all run, each in a process of its own. perf/holding runs this program for
/// all allocators.

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "purge.hpp"
#include "subject.hpp"
#include "support/allocator_in_use.hpp"
#include "support/barrier.hpp"
#include "support/child.hpp"
#include "support/random.hpp"
#include "support/resident.hpp"

namespace {

using perf::Subject;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t sizes = 11;  // from 64 B to 64 KiB

constexpr std::size_t size_of(std::size_t number) {
    return std::size_t{64} << number;
}

struct Held {
    std::size_t peak_in_use = 0;
    std::size_t in_use = 0;
    std::size_t peak = 0;
    std::size_t at_end = 0;
    std::size_t later = 0;
    std::size_t purged = 0;
};

constexpr std::chrono::seconds later{11};
bool waits = false;  // --later

void* allocated(std::size_t bytes) {
    perf::opaque(bytes);
    void* p = Subject::allocate(bytes);
    perf::opaque(p);
    return p;
}

void* touched(std::size_t bytes) {
    return std::memset(allocated(bytes), 1, bytes);
}

/// Measures how much more memory is resident than before the scenario began.
class Watch {
public:
    /// Records resident memory while `in_use` bytes are in use.
    void look(std::size_t in_use) {
        held_.peak_in_use = std::max(held_.peak_in_use, in_use);
        held_.in_use = in_use;
        held_.at_end = more();
        held_.peak = std::max(held_.peak, held_.at_end);
    }
    /// Records resident memory at the end of the scenario, later if requested, and after a purge.
    Held finish(std::size_t in_use) {
        look(in_use);
        if (waits) std::this_thread::sleep_for(later);
        held_.later = more();
        perf::purge();
        held_.purged = more();
        return held_;
    }

private:
    std::size_t more() const {
        const std::size_t now = perf::resident_bytes();
        return now - std::min(now, before_);
    }

    const std::size_t before_ = perf::resident_bytes();
    Held held_;
};

/// For one size after another, allocates and touches blocks of that size, then frees them.
Held phases(bool quick, bool at_random) {
    const std::size_t bytes = quick ? 4 * mib : 256 * mib;
    std::vector<void*> blocks(bytes / size_of(0));
    perf::Generator generator(1);
    std::fill(blocks.begin(), blocks.end(), nullptr);
    Watch watch;
    for (std::size_t number = 0; number < sizes; ++number) {
        const std::span used(blocks.data(), bytes / size_of(number));
        for (void*& block : used) block = touched(size_of(number));
        watch.look(bytes);
        if (at_random) std::shuffle(used.begin(), used.end(), generator);
        for (void* const block : used) Subject::deallocate(block, size_of(number));
    }
    return watch.finish(0);
}

/// Threads that used all sizes once and are now idle.
Held idle_threads(bool quick) {
    const unsigned count = quick ? 10 : 500;
    Watch watch;
    std::barrier used(count + 1);
    std::barrier over(count + 1);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < count; ++i) {
        threads.emplace_back([&] {
            std::array<void*, 16> blocks{};
            for (std::size_t number = 0; number < sizes; ++number) {
                for (void*& block : blocks) block = touched(size_of(number));
                for (void* const block : blocks) Subject::deallocate(block, size_of(number));
            }
            used.arrive_and_wait();
            over.arrive_and_wait();
        });
    }
    used.arrive_and_wait();
    const Held held = watch.finish(0);
    over.arrive_and_wait();
    for (std::thread& thread : threads) thread.join();
    return held;
}

/// Frees nine tenths of the blocks at random. Then repeatedly frees a random half of the rest and
/// allocates as many blocks of the same size.
Held partial_frees(bool quick, std::size_t size) {
    const std::size_t bytes = quick ? 4 * mib : 256 * mib;
    std::vector<void*> blocks(bytes / size);
    perf::Generator generator(2);
    Watch watch;
    for (void*& block : blocks) block = touched(size);
    watch.look(bytes);
    std::shuffle(blocks.begin(), blocks.end(), generator);
    const std::size_t kept = blocks.size() / 10;
    for (std::size_t i = kept; i < blocks.size(); ++i) Subject::deallocate(blocks[i], size);
    const std::span half(blocks.data(), kept / 2);
    for (int round = 0; round < 20; ++round) {
        std::shuffle(blocks.data(), blocks.data() + kept, generator);
        for (void* const block : half) Subject::deallocate(block, size);
        for (void*& block : half) block = touched(size);
    }
    return watch.finish(kept * size);
}

/// Counts how much can be allocated in blocks of 1 MiB when the address space is limited to
/// 2,000,000 KiB.
Held limited_addresses() {
    constexpr rlimit limit{2'000'000 * kib, 2'000'000 * kib};
    setrlimit(RLIMIT_AS, &limit);
    std::size_t got = 0;
    try {
        while (allocated(mib) != nullptr) got += mib;
    } catch (const std::bad_alloc&) {
    }
    return {.peak_in_use = got};
}

struct Scenario {
    std::string_view name;
    Held (*run)(bool quick);
};

constexpr Scenario scenarios[] = {
    {"phases", [](bool quick) { return phases(quick, false); }},
    {"phases_at_random", [](bool quick) { return phases(quick, true); }},
    {"idle_threads", idle_threads},
    {"partial_frees_64", [](bool quick) { return partial_frees(quick, 64); }},
    {"partial_frees_1024", [](bool quick) { return partial_frees(quick, kib); }},
    {"partial_frees_8192", [](bool quick) { return partial_frees(quick, 8 * kib); }},
    {"partial_frees_65536", [](bool quick) { return partial_frees(quick, 64 * kib); }},
    {"limited_addresses", [](bool) { return limited_addresses(); }}};

bool print(const Scenario& scenario, bool quick) {
    const auto held = perf::in_a_child([&] { return scenario.run(quick); });
    if (!held) return false;
    std::printf(
        "{\"scenario\": \"%s\", \"allocator\": \"%s\", \"peak_in_use\": %zu, "
        "\"in_use\": %zu, \"peak\": %zu, \"at_end\": %zu, \"later\": %zu, \"purged\": %zu}\n",
        scenario.name.data(), perf::allocator_in_use().c_str(), held->peak_in_use, held->in_use,
        held->peak, held->at_end, held->later, held->purged);
    std::fflush(stdout);
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    const std::span given(arguments + 1, static_cast<std::size_t>(count - 1));
    bool quick = false;
    std::string_view wanted;
    for (const std::string_view argument : given) {
        if (argument == "--quick") {
            quick = true;
        } else if (argument == "--later") {
            waits = true;
        } else {
            wanted = argument;
        }
    }
    bool any = false;
    for (const Scenario& scenario : scenarios) {
        if (!wanted.empty() && scenario.name != wanted) continue;
        if (!print(scenario, quick)) return 1;
        any = true;
    }
    return any ? 0 : 2;
}
