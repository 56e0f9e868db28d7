/// Question: what do the levels of checks cost, and how soon does `sampled` find an overrun?
///
/// The program writes and reads each small block, and writes each large one; that is the floor of
/// `off`. A hardened pool reads and writes each small block once more, and calls mprotect twice for
/// each large one, and its quarantine lets no block be reused soon. Its floor is the same work on
/// blocks that take turns, in as much memory as the quarantine holds.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "support/barrier.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::Checks;
using tensorpool::MemoryPool;
using tensorpool::PoolOptions;

constexpr std::size_t kib = std::size_t{1} << 10;
constexpr std::size_t mib = std::size_t{1} << 20;

PoolOptions with(Checks checks) {
    PoolOptions options;
    options.checks = checks;
    return options;
}

/// Writes all bytes and reads them.
void use(void* block, std::size_t bytes) {
    std::memset(block, 1, bytes);
    const auto* const read = static_cast<const unsigned char*>(block);
    unsigned sum = 0;
    for (std::size_t i = 0; i < bytes; ++i) sum += read[i];
    perf::opaque(sum);
}

double used_ns(std::size_t bytes, std::size_t count) {
    std::vector<char> block(bytes);
    const double seconds = perf::seconds_of([&] {
        for (std::size_t i = 0; i < count; ++i) use(block.data(), bytes);
    });
    return seconds * 1e9 / static_cast<double>(count);
}

/// What a hardened pool needs at least: it reads the block before and writes it after the program.
double checked_ns(std::size_t bytes, std::size_t count) {
    std::vector<char> memory(PoolOptions().quarantine_bytes);
    std::size_t at = 0;
    const double seconds = perf::seconds_of([&] {
        for (std::size_t i = 0; i < count; ++i) {
            char* const block = memory.data() + at;
            const auto* const words = reinterpret_cast<const std::uint64_t*>(block);
            auto any = std::accumulate(words, words + bytes / sizeof *words, std::uint64_t{0},
                                       std::bit_or<>());
            perf::opaque(any);
            use(block, bytes);
            std::memset(block, 0, bytes);
            at += bytes;
            if (at + bytes > memory.size()) at = 0;
        }
    });
    return seconds * 1e9 / static_cast<double>(count);
}

/// Returns the nanoseconds of a pair whose block is used in between.
double pair_ns(Checks checks, std::size_t bytes, std::size_t count) {
    MemoryPool pool(with(checks));
    const auto pairs = [&](std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            void* const block = pool.allocate(bytes);
            use(block, bytes);
            pool.deallocate(block, bytes);
        }
    };
    pairs(4 * count);  // fills the quarantine
    return perf::seconds_of([&] { pairs(count); }) * 1e9 / static_cast<double>(count);
}

void measure_pairs(const perf::Options& options, perf::Report& report) {
    const std::size_t count = options.quick ? 100 : 20'000;
    std::vector<perf::Cells> rows = {{"ns of a pair beside one write and one read", "floor", "off",
                                      "sampled", "full", "hardened", "floor of hardened",
                                      "hardened beside it"}};
    for (const std::size_t bytes : {std::size_t{64}, kib, 16 * kib}) {
        const perf::Turns turns(options.rounds,
                                {[&] { return used_ns(bytes, count); },
                                 [&] { return pair_ns(Checks::off, bytes, count); },
                                 [&] { return pair_ns(Checks::sampled, bytes, count); },
                                 [&] { return pair_ns(Checks::full, bytes, count); },
                                 [&] { return pair_ns(Checks::hardened, bytes, count); },
                                 [&] { return checked_ns(bytes, count); }});
        const double floor = turns.median(0);
        const double hardened = turns.median(4) - turns.median(5);
        rows.push_back({std::to_string(bytes) + " B", text(floor, 1),
                        text(turns.median(1) - floor, 1), text(turns.median(2) - floor, 1),
                        text(turns.median(3) - floor, 1), text(turns.median(4) - floor, 1),
                        text(turns.median(5), 1),
                        options.quick ? text(hardened, 1) : report.judge(hardened, 100, 1)});
    }
    report.print("Small blocks", rows);
}

/// Returns the microseconds of one write and two calls of mprotect, if `blocks` blocks take turns.
double protected_us(std::size_t bytes, std::size_t blocks, std::size_t count) {
    const std::size_t all = blocks * bytes;
    char* const memory = static_cast<char*>(
        mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const auto turns = [&](std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            std::memset(memory + i % blocks * bytes, 1, bytes);
            mprotect(memory + i % blocks * bytes, bytes, PROT_NONE);
            mprotect(memory + (i + 1) % blocks * bytes, bytes, PROT_READ | PROT_WRITE);
        }
    };
    turns(blocks);
    const double seconds = perf::seconds_of([&] { turns(count); });
    munmap(memory, all);
    return seconds * 1e6 / static_cast<double>(count);
}

double large_us(Checks checks, std::size_t bytes, std::size_t count) {
    MemoryPool pool(with(checks));
    const auto pairs = [&](std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            void* const block = pool.allocate(bytes);
            std::memset(block, 1, bytes);
            pool.deallocate(block, bytes);
        }
    };
    pairs(2 * 16 * mib / bytes + 2);  // fills the quarantine
    const double seconds = perf::seconds_of([&] { pairs(count); });
    return seconds * 1e6 / static_cast<double>(count);
}

void measure_large(const perf::Options& options, perf::Report& report) {
    const std::size_t count = options.quick ? 5 : 500;
    std::vector<perf::Cells> rows = {{"µs of a pair with one write", "floor of one block",
                                      "floor of blocks in turn", "off", "hardened",
                                      "of the first floor", "of the second"}};
    for (const std::size_t bytes : {128 * kib, mib, 8 * mib}) {
        const std::size_t in_turn = PoolOptions().quarantine_bytes / bytes;
        const perf::Turns turns(options.rounds,
                                {[&] { return protected_us(bytes, 1, count); },
                                 [&] { return protected_us(bytes, in_turn, count); },
                                 [&] { return large_us(Checks::off, bytes, count); },
                                 [&] { return large_us(Checks::hardened, bytes, count); }});
        rows.push_back(
            {std::to_string(bytes / kib) + " KiB", text(turns.median(0), 1),
             text(turns.median(1), 1), text(turns.median(2), 1), text(turns.median(3), 1),
             text(turns.ratio(3, 0)),
             options.quick ? text(turns.ratio(3, 1)) : report.judge(turns.ratio(3, 1), 1.2)});
    }
    report.print("Large blocks", rows);
}

/// Makes steps of 100 µs with ten blocks each, of which one is overrun by a byte.
void overrun_in_steps(Checks checks, int steps) {
    using Clock = std::chrono::steady_clock;
    MemoryPool pool(with(checks));
    for (int step = 0; step < steps; ++step) {
        const auto end = Clock::now() + std::chrono::microseconds(100);
        char* blocks[10];
        for (std::size_t i = 0; i < 10; ++i) {
            blocks[i] = static_cast<char*>(pool.allocate(1000 + 500 * i));
        }
        static_cast<volatile char*>(blocks[3])[1000 + 500 * 3] = 1;
        while (Clock::now() < end) continue;
        for (std::size_t i = 0; i < 10; ++i) pool.deallocate(blocks[i], 1000 + 500 * i);
    }
}

/// Returns whether a child process with the overrun was stopped.
bool is_found(Checks checks, int steps) {
    const pid_t child = fork();
    if (child == 0) {
        (void)std::freopen("/dev/null", "w", stderr);
        overrun_in_steps(checks, steps);
        _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

void count_found(const perf::Options& options, perf::Report& report) {
    const int runs = options.quick ? 2 : 100;
    std::vector<perf::Cells> rows = {{"an overrun in each of 10,000 steps", "runs", "found"}};
    for (const Checks checks : {Checks::sampled, Checks::hardened}) {
        int found = 0;
        for (int run = 0; run < runs; ++run) found += is_found(checks, 10'000) ? 1 : 0;
        rows.push_back({checks == Checks::sampled ? "sampled" : "hardened", std::to_string(runs),
                        std::to_string(found)});
    }
    report.print("Overruns found", rows);
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 7);
    perf::Report report(options);
    measure_pairs(options, report);
    measure_large(options, report);
    count_found(options, report);
    return report.status();
}
