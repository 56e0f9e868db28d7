#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "stress/planned/hands.hpp"

namespace {

using namespace tensorpool;
using stress::Hands;
using stress::HeldBlock;

struct CommandLine {
    unsigned iterations = 400;
    unsigned seed = 1;
    unsigned threads = 2;
    unsigned drift = 1;  // percentage of requests that are changed
    bool plant = false;
};

[[noreturn]] void explain() {
    std::fputs(
        "usage: planned_stress [--iterations N] [--seed N] [--threads N] [--drift PERCENT] "
        "[--plant]\n",
        stderr);
    std::exit(2);
}

CommandLine command_line_from(int count, char** arguments) {
    CommandLine line;
    for (int i = 1; i < count; ++i) {
        const std::string_view name = arguments[i];
        if (name == "--plant") {
            line.plant = true;
            continue;
        }
        if (i + 1 == count) explain();
        const auto value = static_cast<unsigned>(std::strtoul(arguments[++i], nullptr, 10));
        if (name == "--iterations") {
            line.iterations = value;
        } else if (name == "--seed") {
            line.seed = value;
        } else if (name == "--threads") {
            line.threads = value;
        } else if (name == "--drift") {
            line.drift = value;
        } else {
            explain();
        }
    }
    return line;
}

/// The owner's loop. Each iteration requests the same blocks, except for the drift, frees some
/// itself and hands the others to the threads.
class Loop {
public:
    Loop(const CommandLine& line, PlannedArena& arena, Hands& hands)
        : line_(line), arena_(arena), hands_(hands), random_(line.seed) {
        for (int i = 0; i < 200; ++i) bytes_.push_back(64 * (1 + random_() % 64));
    }

    void iterate() {
        std::vector<HeldBlock> own;
        const IterationScope scope(arena_);
        for (const std::size_t bytes : bytes_) {
            if (drifts()) continue;
            own.push_back(request(drifts() ? 64 * (1 + random_() % 128) : bytes));
            if (own.size() > 8) give(own, random_() % own.size());
            // Bounds the lifetimes of blocks that other threads hold.
            if (random_() % 50 == 0) hands_.wait_for(10);
        }
        while (!own.empty()) give(own, own.size() - 1);
        hands_.wait_for(drifts() ? 10 : 0);
        hands_.rethrow();
    }

private:
    bool drifts() { return random_() % 100 < line_.drift; }
    HeldBlock request(std::size_t bytes) {
        const HeldBlock block{static_cast<std::uint64_t*>(arena_.allocate(bytes)),
                              bytes / sizeof(std::uint64_t), ++numbers_};
        block.fill();
        return block;
    }
    void give(std::vector<HeldBlock>& own, std::size_t at) {
        const HeldBlock block = own[at];
        own.erase(own.begin() + static_cast<std::ptrdiff_t>(at));
        if (random_() % 2 == 0) return hands_.take(block);
        block.verify();
        arena_.deallocate(block.words);
    }

    const CommandLine& line_;
    PlannedArena& arena_;
    Hands& hands_;
    std::mt19937 random_;
    std::vector<std::size_t> bytes_;
    std::uint64_t numbers_ = 0;
};

void expect_nothing_held(const PlannedArenaStatistics& statistics) {
    if (statistics.in_use_bytes + statistics.pool_in_use_bytes == 0) return;
    throw std::runtime_error("the statistics did not return to zero: " + to_text(statistics));
}

void run(const CommandLine& line) {
    MemoryPool pool;
    PlannedArena arena({.pool = &pool, .drift_iterations = line.plant ? 1'000'000u : 2u});
    {
        Hands hands(arena, line.threads, line.plant);
        Loop loop(line, arena, hands);
        for (unsigned i = 0; i < line.iterations; ++i) loop.iterate();
        hands.wait_for(0);
        hands.rethrow();
    }
    std::fputs(to_text(arena.statistics()).c_str(), stdout);
    expect_nothing_held(arena.statistics());
}

}  // namespace

int main(int count, char** arguments) {
    const CommandLine line = command_line_from(count, arguments);
    try {
        run(line);
        if (!line.plant) return 0;
        std::printf("planned_stress: the planted fault was not found\n");
    } catch (const std::exception& error) {
        std::fprintf(line.plant ? stdout : stderr, "planned_stress: %s%s\n",
                     line.plant ? "the planted fault is found: " : "", error.what());
    }
    return 1;
}
