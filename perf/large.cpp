/// Question: what do blocks of 128 KiB to 256 MiB cost that are allocated, touched and given back
/// again and again, against touching alone blocks that are kept? Of one size, of sizes that differ
/// a little each time, and 16 of random sizes at once. Also counted: minor page faults a round.

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

/// The sizes of the blocks that live at the same time.
using Round = std::vector<std::size_t>;
using Touch = void (*)(char* block, std::size_t bytes);

/// Every byte, as who computes a tensor writes it.
void write_all(char* block, std::size_t bytes) {
    std::fill_n(block, bytes, char{1});
}
/// The least that needs every page.
void write_pages(char* block, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += 4096) block[at] = 1;
}
/// The first 64 KiB: 16 blocks of any size then take some 10 us to touch, so that what allocating
/// them costs can be seen beside it.
void write_head(char* block, std::size_t) {
    std::fill_n(block, std::size_t{64} << 10, char{1});
}

/// Blocks for a round, and what is done with them.
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

/// At each place the largest block of any round: all rounds can touch blocks of these sizes.
Round largest_of(const std::vector<Round>& rounds) {
    Round largest = rounds.front();
    for (const Round& round : rounds) {
        for (std::size_t i = 0; i < round.size(); ++i) largest[i] = std::max(largest[i], round[i]);
    }
    return largest;
}

/// The kept blocks are given back before each slice of rounds, which so gets the same memory.
void ask(benchmark::State& state, const std::vector<Round>& rounds, Touch touch) {
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

/// The kept blocks stay, beside the rounds. Several turns come first, until every page has come
/// that rounds of many sizes will touch.
void ask_beside_kept(benchmark::State& state, const std::vector<Round>& rounds, Touch touch) {
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

/// Enough for a slice that the clock can measure, few enough for blocks of 256 MiB.
std::size_t rounds_for(std::size_t bytes, std::size_t least) {
    return std::clamp<std::size_t>(64 * MiB / bytes, least, 64);
}

void large(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    ask(state, std::vector<Round>(rounds_for(bytes, 1), Round{bytes}), write_all);
}
BENCHMARK(large)->Arg(MiB / 8)->Arg(MiB)->Arg(16 * MiB)->Arg(256 * MiB);

void large_byte_a_page(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    ask(state, std::vector<Round>(rounds_for(bytes, 1), Round{bytes}), write_pages);
}
BENCHMARK(large_byte_a_page)->Arg(MiB / 8)->Arg(256 * MiB);

/// Sizes up to 5 % above and below.
void large_varied(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    perf::Generator generator(1);
    std::vector<Round> rounds(rounds_for(bytes, 4));
    for (Round& round : rounds) round = {bytes * (950 + generator() % 101) / 1000};
    ask(state, rounds, write_all);
}
BENCHMARK(large_varied)->Arg(MiB / 8)->Arg(MiB)->Arg(16 * MiB)->Arg(256 * MiB);

void ask_sixteen(benchmark::State& state, std::size_t draws, std::size_t repeats) {
    perf::Generator generator(1);
    std::vector<Round> rounds(draws, Round(16));
    for (Round& round : rounds) {
        for (std::size_t& bytes : round) bytes = perf::log_uniform(generator, MiB / 8, 256 * MiB);
    }
    for (std::size_t i = draws; i < draws * repeats; ++i) rounds.push_back(rounds[i - draws]);
    ask_beside_kept(state, rounds, write_head);
}
/// The same 16 sizes each time.
void large_sixteen(benchmark::State& state) {
    ask_sixteen(state, 1, 16);
}
BENCHMARK(large_sixteen);
/// Other sizes each time, from 16 draws in turn.
void large_sixteen_varied(benchmark::State& state) {
    ask_sixteen(state, 16, 1);
}
BENCHMARK(large_sixteen_varied);

}  // namespace
