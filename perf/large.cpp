/// Question: how long does it take to allocate, touch and free blocks of 128 KiB to 256 MiB
/// repeatedly, relative to touching blocks that are kept? Measured with one size, with sizes that
/// vary slightly, and with 16 blocks of random sizes at once. Minor page faults per round are
/// counted as well.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "subject.hpp"
#include "support/barrier.hpp"
#include "support/random.hpp"
#include "support/slices.hpp"

namespace {

using perf::Subject;

constexpr std::size_t MiB = std::size_t{1} << 20;

/// The sizes of the blocks that are in use at the same time.
using Round = std::vector<std::size_t>;
using Touch = void (*)(char* block, std::size_t bytes);

/// Writes every byte, as a program does that computes a tensor.
void write_all(char* block, std::size_t bytes) {
    std::fill_n(block, bytes, char{1});
}
/// Writes one byte of each page, the least that brings in every page.
void write_pages(char* block, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += 4096) block[at] = 1;
}
/// Writes the first 64 KiB. Touching 16 blocks of any size then takes about 10 us, so that the cost
/// of allocating them is visible.
void write_head(char* block, std::size_t) {
    std::fill_n(block, std::size_t{64} << 10, char{1});
}

/// The blocks of one round, and the three steps of a round.
class Blocks {
public:
    Blocks(std::size_t count, Touch how) : blocks_(count), touch_(how) {}

    void allocate(const Round& sizes) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            std::size_t bytes = sizes[i];
            perf::opaque(bytes);
            blocks_[i] = static_cast<char*>(Subject::allocate(bytes));
        }
    }
    void touch(const Round& sizes) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            touch_(blocks_[i], sizes[i]);
            perf::opaque(blocks_[i]);
        }
    }
    void deallocate(const Round& sizes) {
        for (std::size_t i = 0; i < sizes.size(); ++i) Subject::deallocate(blocks_[i], sizes[i]);
    }
    void whole(const Round& sizes) {
        allocate(sizes);
        touch(sizes);
        deallocate(sizes);
    }

private:
    std::vector<char*> blocks_;
    Touch touch_;
};

/// Returns, at each index, the largest block of any round. Every round can touch blocks of these
/// sizes.
Round largest_of(const std::vector<Round>& rounds) {
    Round largest = rounds.front();
    for (const Round& round : rounds) {
        for (std::size_t i = 0; i < round.size(); ++i) largest[i] = std::max(largest[i], round[i]);
    }
    return largest;
}

/// Frees the kept blocks before each slice of rounds, so that the rounds get the same memory.
void measure(benchmark::State& state, const std::vector<Round>& rounds, Touch touch) {
    const Round kept = largest_of(rounds);
    Blocks blocks(kept.size(), touch);
    perf::Slices slices;
    const auto touch_kept = [&] {
        for (const Round& round : rounds) blocks.touch(round);
    };
    const auto make_each = [&] {
        for (const Round& round : rounds) blocks.whole(round);
    };
    blocks.whole(kept);
    make_each();
    for (auto _ : state) {
        blocks.allocate(kept);
        touch_kept();
        slices.base(touch_kept);
        blocks.deallocate(kept);
        blocks.whole(rounds.back());
        slices.whole(make_each);
    }
    slices.report(state, rounds.size());
}

/// Keeps the kept blocks while rounds run. Several turns run first without being timed, so that
/// every page is there that rounds of many sizes will touch.
void measure_with_kept(benchmark::State& state, const std::vector<Round>& rounds, Touch touch) {
    const Round kept = largest_of(rounds);
    Blocks kept_blocks(kept.size(), touch), blocks(kept.size(), touch);
    perf::Slices slices;
    const auto touch_kept = [&] {
        for (const Round& round : rounds) kept_blocks.touch(round);
    };
    const auto make_each = [&] {
        for (const Round& round : rounds) blocks.whole(round);
    };
    kept_blocks.allocate(kept);
    touch_kept();
    for (int turn = 0; turn < 16; ++turn) make_each();
    for (auto _ : state) {
        slices.base(touch_kept);
        slices.whole(make_each);
    }
    kept_blocks.deallocate(kept);
    slices.report(state, rounds.size());
}

/// Returns the number of rounds in a slice: enough for the clock to measure, and few enough for
/// blocks of 256 MiB.
std::size_t rounds_for(std::size_t bytes, std::size_t min_rounds) {
    return std::clamp<std::size_t>(64 * MiB / bytes, min_rounds, 64);
}

void large(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    measure(state, std::vector<Round>(rounds_for(bytes, 1), Round{bytes}), write_all);
}
BENCHMARK(large)->Arg(MiB / 8)->Arg(MiB)->Arg(16 * MiB)->Arg(256 * MiB);

void large_byte_a_page(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    measure(state, std::vector<Round>(rounds_for(bytes, 1), Round{bytes}), write_pages);
}
BENCHMARK(large_byte_a_page)->Arg(MiB / 8)->Arg(256 * MiB);

/// Uses sizes up to 5 % below and above `bytes`.
void large_varied(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    perf::Generator generator(1);
    std::vector<Round> rounds(rounds_for(bytes, 4));
    for (Round& round : rounds) round = {bytes * (950 + generator() % 101) / 1000};
    measure(state, rounds, write_all);
}
BENCHMARK(large_varied)->Arg(MiB / 8)->Arg(MiB)->Arg(16 * MiB)->Arg(256 * MiB);

void measure_sixteen(benchmark::State& state, std::size_t draws, std::size_t repeats) {
    perf::Generator generator(1);
    std::vector<Round> rounds(draws, Round(16));
    for (Round& round : rounds) {
        for (std::size_t& bytes : round) bytes = perf::log_uniform(generator, MiB / 8, 256 * MiB);
    }
    for (std::size_t i = draws; i < draws * repeats; ++i) rounds.push_back(rounds[i - draws]);
    measure_with_kept(state, rounds, write_head);
}
/// Uses the same 16 sizes in each round.
void large_sixteen(benchmark::State& state) {
    measure_sixteen(state, 1, 16);
}
BENCHMARK(large_sixteen);
/// Uses other sizes in each round, from 16 draws in turn.
void large_sixteen_varied(benchmark::State& state) {
    measure_sixteen(state, 16, 1);
}
BENCHMARK(large_sixteen_varied);

}  // namespace
