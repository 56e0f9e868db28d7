/// Question: how much time does a recorded entry take the thread that makes the call?
///
/// The process allocates and frees on one core. The recorder, another process on another core,
/// requests a recording and takes the entries out after each window. A window is so short that no
/// ring fills. Recording is on for one turn of each round and off for the other, in random order.
/// A pair of calls makes two entries, so the time of an entry is half of what recording adds to a
/// pair.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/trace_format.hpp>

#include "platform/cycle_counter.hpp"
#include "support/barrier.hpp"
#include "support/cores.hpp"
#include "support/interval.hpp"
#include "support/program.hpp"
#include "support/random.hpp"
#include "support/turns.hpp"
#include "trace/ring_layout.hpp"
#include "trace_recorder.hpp"

namespace {

using perf::FloorRing;
using perf::text;
using tensorpool::MemoryPool;
using tensorpool::TraceAction;
using tensorpool::trace::ring_entries;

constexpr std::size_t pairs_a_window = 7500;
constexpr std::size_t quick_pairs = 500;
constexpr std::size_t windows_a_turn = 5;
static_assert(2 * pairs_a_window < ring_entries, "a ring holds all entries of a window");

/// Pairs of calls of one size. As many blocks are in use at once as `blocks` has elements.
struct Pairs {
    const char* name;
    std::size_t bytes;
    std::vector<void*> blocks;

    void run(MemoryPool& pool, std::size_t pairs) {
        for (std::size_t i = 0; i < pairs; i += blocks.size()) {
            for (void*& block : blocks) allocate(pool, block);
            for (void* const block : blocks) deallocate(pool, block);
        }
    }

private:
    void allocate(MemoryPool& pool, void*& block) const {
        std::size_t size = bytes;
        perf::opaque(size);
        block = pool.allocate(size);
        perf::opaque(block);
    }
    void deallocate(MemoryPool& pool, void* block) const {
        std::size_t size = bytes;
        perf::opaque(size);
        pool.deallocate(block, size);
    }
};

/// Writes two entries for each pair of calls, with the least work that a recorder needs. With
/// `in_order` the second counter is read in order, after all earlier instructions, as the recorder
/// does for a free.
template <bool in_order>
void write_floor(FloorRing& ring, std::size_t pairs) {
    using namespace tensorpool::platform;
    std::uint64_t next = ring.written.load(std::memory_order_relaxed);
    const auto write = [&](std::uint64_t cycles, TraceAction action) {
        ring.entries[next % ring_entries] = {.cycles = cycles,
                                             .address = next,
                                             .bytes = 256,
                                             .source = 1,
                                             .action = action,
                                             .alignment_log2 = 0,
                                             .reserved = 0};
        ring.written.store(++next, std::memory_order_release);
    };
    for (std::size_t i = 0; i < pairs; ++i) {
        write(cycle_counter(), TraceAction::allocate);
        write(in_order ? ordered_cycle_counter() : cycle_counter(), TraceAction::deallocate);
    }
}

/// The values of all rounds, in nanoseconds.
struct Values {
    std::vector<double> off;    // a pair
    std::vector<double> on;     // a pair
    std::vector<double> entry;  // half of the difference, round by round
};

class Measurement {
public:
    Measurement(FloorRing& floor, bool quick)
        : floor_(floor), recorder_(floor), pairs_(quick ? quick_pairs : pairs_a_window) {
        take_slow_path();  // recording can only be requested of a process that has made a call
    }

    void round(bool on_first) {
        const auto take = [&] { recorder_.take_floor(); };
        floors_[0].push_back(ns_a_pair([&] { write_floor<false>(floor_, pairs_); }, take) / 2);
        floors_[1].push_back(ns_a_pair([&] { write_floor<true>(floor_, pairs_); }, take) / 2);
        turn(on_first);
        turn(!on_first);
        for (Values& one : values_) {
            one.entry.push_back((one.on.back() - one.off.back()) / 2);
        }
    }

    const std::vector<double>& floor(std::size_t which) const { return floors_[which]; }
    const std::vector<Pairs>& subjects() const { return subjects_; }
    const Values& of(std::size_t subject) const { return values_[subject]; }
    const perf::TraceRecorder& recorder() const { return recorder_; }

private:
    /// Returns the median of several windows. The entries of each window are taken out after it.
    /// One more window comes first, untimed, because the caches hold another subject's memory.
    template <class Work, class Take>
    double ns_a_pair(Work work, Take take) const {
        std::vector<double> ns;
        for (std::size_t window = 0; window <= windows_a_turn; ++window) {
            // Reading this clock takes about 0.4 us, whether recording is on or off.
            const double seconds = perf::cpu_seconds_of(work);
            if (window != 0) ns.push_back(seconds * 1e9 / static_cast<double>(pairs_));
            take();
        }
        return perf::median(ns);
    }

    void turn(bool on) {
        if (on) begin();
        const std::uint64_t entries = on ? 2 * pairs_ : 0;
        for (std::size_t i = 0; i < subjects_.size(); ++i) {
            const double ns = ns_a_pair([&] { subjects_[i].run(pool_, pairs_); },
                                        [&] { recorder_.take(entries); });
            (on ? values_[i].on : values_[i].off).push_back(ns);
        }
        if (on) end();
    }

    // A process notices a request to record in its next slow path.
    void take_slow_path() {
        constexpr std::size_t bytes = std::size_t{1} << 20;
        pool_.deallocate(pool_.allocate(bytes), bytes);
    }
    // Begins a recording, and writes each position of the ring once before anything is timed.
    void begin() {
        recorder_.start();
        take_slow_path();
        recorder_.expect_begun();
        for (std::size_t written = 0; written < ring_entries; written += 2 * pairs_) {
            subjects_.front().run(pool_, pairs_);
            recorder_.take(2 * pairs_);
        }
    }
    void end() {
        recorder_.stop();
        take_slow_path();
        recorder_.expect_ended();
    }

    FloorRing& floor_;
    perf::TraceRecorder recorder_;  // before the pool
    std::size_t pairs_;
    MemoryPool pool_;
    std::vector<Pairs> subjects_ = {{"256 B", 256, std::vector<void*>(1)},
                                    {"1 KiB, 100 at once", 1024, std::vector<void*>(100)},
                                    {"1 MiB", 1 << 20, std::vector<void*>(1)}};
    std::array<Values, 3> values_;
    std::array<std::vector<double>, 2> floors_;
};

std::string interval(const std::vector<double>& values) {
    const perf::Interval found = perf::interval_of_median(values);
    return text(found.low) + " to " + text(found.high);
}

void print(const Measurement& measured, perf::Report& report) {
    std::vector<perf::Cells> floors = {
        {"minimum work for an entry", "ns an entry", "95 % interval"}};
    const char* const names[] = {"cycle counter, 32 B, head",
                                 "the same, every second counter read in order"};
    for (const std::size_t i : {0U, 1U}) {
        floors.push_back(
            {names[i], text(perf::median(measured.floor(i))), interval(measured.floor(i))});
    }
    report.print("trace: the floor", floors);
    std::vector<perf::Cells> rows = {{"pairs of", "off, ns a pair", "on, ns a pair", "ns an entry",
                                      "95 % interval", "of floor"}};
    const double floor = perf::median(measured.floor(0));
    for (std::size_t i = 0; i < measured.subjects().size(); ++i) {
        const Values& values = measured.of(i);
        const double entry = perf::median(values.entry);
        rows.push_back({measured.subjects()[i].name, text(perf::median(values.off)),
                        text(perf::median(values.on)), report.judge(entry, 20, 2),
                        interval(values.entry), text(entry / floor)});
    }
    report.print("trace: time that recording adds for the calling thread", rows);
    std::printf("dropped: %llu of %llu entries; recordings: %zu\n",
                static_cast<unsigned long long>(measured.recorder().dropped()),
                static_cast<unsigned long long>(measured.recorder().entries()),
                measured.floor(0).size());
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 201);
    perf::Report report(options);
    try {
        perf::stay_on_core(0);
        Measurement measurement(perf::map_floor_ring(), options.quick);
        perf::Generator generator(13);
        const int rounds = options.quick ? std::min(options.rounds, 5) : options.rounds;
        for (int i = 0; i < rounds; ++i) measurement.round((generator() & 1) != 0);
        print(measurement, report);
    } catch (const std::exception& error) {
        report.print_unmeasured("trace", error.what());
        return 1;
    }
    return report.status();
}
