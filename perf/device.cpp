/// Question: how long does the caching allocator take to serve a block that the same stream freed
/// recently?

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/host_backend.hpp>

#include "support/cores.hpp"
#include "support/device_pairs.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::Floor;
using perf::pair_ns;
using perf::text;
using tensorpool::CachingAllocator;
using tensorpool::StreamHandle;

/// The usual design of a caching allocator: one mutex, free blocks in a set ordered by stream, size
/// and address, and blocks in use in a hash table.
class Plain {
public:
    void* allocate(std::size_t bytes, StreamHandle stream) {
        const std::lock_guard guard(mutex_);
        const auto found = free_.lower_bound({stream, bytes, 0});
        const Block block = *found;
        free_.erase(found);
        used_.emplace(block.address, block);
        return reinterpret_cast<void*>(block.address);
    }
    void deallocate(void* address) {
        const std::lock_guard guard(mutex_);
        const auto found = used_.find(reinterpret_cast<std::uintptr_t>(address));
        free_.insert(found->second);
        used_.erase(found);
    }
    /// Adds a stream with 64 free blocks.
    void add_stream(StreamHandle stream) {
        const std::uintptr_t begin = ++streams_ << 40;
        for (std::uintptr_t i = 1; i <= 64; ++i) free_.insert({stream, i << 16, begin + (i << 24)});
    }

private:
    struct Block {
        StreamHandle stream;
        std::size_t bytes;
        std::uintptr_t address;
        auto operator<=>(const Block&) const = default;
    };
    std::uintptr_t streams_ = 0;
    std::mutex mutex_;
    std::set<Block> free_;
    std::unordered_map<std::uintptr_t, Block> used_;
};

/// Returns nanoseconds per pair on the slower of two threads. Each has a core of its own and uses
/// its stream.
template <class Allocator>
double two_threads_ns(Allocator& allocator, std::size_t pairs, std::size_t bytes, StreamHandle one,
                      StreamHandle two) {
    std::atomic<int> ready = 0;
    double ns[2];
    const auto run = [&](int index, StreamHandle stream) {
        perf::stay_on_core(index);
        ready.fetch_add(1);
        for (int spins = 0; ready.load() < 2; ++spins) {
            if (spins > 100'000) std::this_thread::yield();
        }
        ns[index] = pair_ns(allocator, pairs, bytes, stream);
    };
    std::thread other(run, 1, two);
    run(0, one);
    other.join();
    return std::max(ns[0], ns[1]);
}

struct Subjects {
    Subjects() {
        (void)backend.create_stream(0, &one);
        (void)backend.create_stream(0, &two);
        plain.add_stream(one);
        plain.add_stream(two);
    }
    ~Subjects() {
        (void)backend.destroy_stream(0, one);
        (void)backend.destroy_stream(0, two);
    }
    tensorpool::HostBackend backend;
    CachingAllocator ours{backend, 0};
    Plain plain;
    Floor floor;
    StreamHandle one = nullptr;
    StreamHandle two = nullptr;
};

void measure_one_thread(const perf::Options& options, perf::Report& report, Subjects& s) {
    std::vector<perf::Cells> rows = {
        {"one thread, ns a pair", "floor", "ours", "one mutex, a set", "ours of that"}};
    const std::size_t pairs = options.quick ? 100 : 100'000;
    for (const std::size_t bytes : {1000U, 1'000'000U, 100'000'000U}) {
        const perf::Turns measured(options.rounds,
                                   {[&] { return pair_ns(s.floor, pairs, bytes, s.one); },
                                    [&] { return pair_ns(s.ours, pairs, bytes, s.one); },
                                    [&] { return pair_ns(s.plain, pairs, 1000, s.one); }});
        rows.push_back({std::to_string(bytes) + " B", text(measured.median(0), 1),
                        report.judge(measured.median(1), 40, 1), text(measured.median(2), 1),
                        text(measured.ratio(1, 2))});
    }
    report.print("device: a block that the same stream freed recently", rows);
}

void measure_two_threads(const perf::Options& options, perf::Report& report, Subjects& s) {
    if (!perf::two_cores()) {
        return report.print_unmeasured("device: two threads", "this process may use one core only");
    }
    const std::size_t pairs = options.quick ? 100 : 200'000;
    const std::size_t bytes = 1000;
    const perf::Turns measured(
        options.rounds, {[&] { return pair_ns(s.ours, pairs, bytes, s.one); },
                         [&] { return two_threads_ns(s.ours, pairs, bytes, s.one, s.two); },
                         [&] { return two_threads_ns(s.ours, pairs, bytes, s.one, s.one); },
                         [&] { return pair_ns(s.plain, pairs, bytes, s.one); },
                         [&] { return two_threads_ns(s.plain, pairs, bytes, s.one, s.two); }});
    report.print("device: two threads",
                 {{"ns a pair", "one thread", "two, two streams", "ratio", "two, one stream"},
                  {"ours", text(measured.median(0), 1), text(measured.median(1), 1),
                   report.judge(measured.ratio(1, 0), 1.1), text(measured.median(2), 1)},
                  {"one mutex, a set", text(measured.median(3), 1), text(measured.median(4), 1),
                   text(measured.ratio(4, 3)), ""}});
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 101);
    perf::Report report(options);
    perf::stay_on_core(0);
    Subjects subjects;
    measure_one_thread(options, report, subjects);
    measure_two_threads(options, report, subjects);
    return report.status();
}
