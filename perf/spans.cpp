/// Question: how much memory does a pool hold for its large blocks, relative to what is in use, and
/// how much would it hold if they came from an arena? An arena returns memory at its top only. The
/// one here does the best that this allows: when the topmost block is freed, it returns that block
/// and all ended blocks below it.
///
/// Bytes are counted, not timed, so the result is the same in every run on every machine.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <tensorpool/arena.hpp>
#include <tensorpool/memory_pool.hpp>

#include "support/program.hpp"
#include "support/random.hpp"

namespace {

using perf::text;
using tensorpool::Arena;
using tensorpool::MemoryPool;

constexpr std::size_t kib = std::size_t{1} << 10;
constexpr std::size_t mib = std::size_t{1} << 20;
constexpr double mib_bytes = 1 << 20;

/// Spans of a pool, committed as the pool needs them and never touched.
class Spans {
public:
    std::size_t allocate(std::size_t bytes) {
        blocks_.push_back(pool_.allocate(bytes));
        return blocks_.size() - 1;
    }
    void deallocate(std::size_t number) { pool_.deallocate(blocks_[number]); }
    std::size_t peak_held() const { return pool_.statistics().peak_capacity_bytes; }

private:
    MemoryPool pool_;
    std::vector<void*> blocks_;
};

/// An arena that measures, with blocks that end one by one.
class ArenaBlocks {
public:
    std::size_t allocate(std::size_t bytes) {
        const Arena::Mark before = arena_.mark();
        (void)arena_.allocate(bytes);
        marks_.push_back({before, stack_.size()});
        stack_.push_back({marks_.size() - 1, true});
        return marks_.size() - 1;
    }
    void deallocate(std::size_t number) {
        stack_[marks_[number].position].in_use = false;
        while (!stack_.empty() && !stack_.back().in_use) {
            arena_.release_to(marks_[stack_.back().number].before);
            stack_.pop_back();
        }
    }
    std::size_t peak_held() const { return arena_.peak(); }

private:
    struct Made {
        Arena::Mark before;
        std::size_t position;
    };
    struct Block {
        std::size_t number;
        bool in_use;
    };
    Arena arena_ = Arena::measuring();
    std::vector<Made> marks_;
    std::vector<Block> stack_;
};

/// Who makes the calls: blocks of 128 KiB to 16 MiB, 64 at a time.
template <class Blocks>
class Caller {
public:
    explicit Caller(Blocks& blocks) : blocks_(blocks) {}

    void allocate() {
        const std::size_t bytes = perf::log_uniform(generator_, 128 * kib, 16 * mib);
        alive_.push_back({blocks_.allocate(bytes), bytes});
        in_use_ += bytes;
        peak_ = std::max(peak_, in_use_);
    }
    void deallocate(std::size_t index) {
        blocks_.deallocate(alive_[index].number);
        in_use_ -= alive_[index].bytes;
        alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    std::size_t random_index() { return generator_() % alive_.size(); }
    std::size_t alive() const { return alive_.size(); }
    std::size_t peak() const { return peak_; }

private:
    struct Alive {
        std::size_t number;
        std::size_t bytes;
    };
    Blocks& blocks_;
    perf::Generator generator_{1};
    std::vector<Alive> alive_;
    std::size_t in_use_ = 0;
    std::size_t peak_ = 0;
};

constexpr std::size_t at_a_time = 64;

template <class Blocks>
void fill(Caller<Blocks>& caller) {
    while (caller.alive() < at_a_time) caller.allocate();
}

struct InReverse {
    template <class Blocks>
    void operator()(Caller<Blocks>& caller, int steps) const {
        for (int i = 0; i < steps / static_cast<int>(at_a_time); ++i) {
            fill(caller);
            while (caller.alive() > 0) caller.deallocate(caller.alive() - 1);
        }
    }
};

struct InOrder {
    template <class Blocks>
    void operator()(Caller<Blocks>& caller, int steps) const {
        fill(caller);
        for (int i = 0; i < steps; ++i) {
            caller.deallocate(0);
            caller.allocate();
        }
    }
};

struct AtRandom {
    template <class Blocks>
    void operator()(Caller<Blocks>& caller, int steps) const {
        fill(caller);
        for (int i = 0; i < steps; ++i) {
            caller.deallocate(caller.random_index());
            caller.allocate();
        }
    }
};

struct Held {
    std::size_t in_use;
    std::size_t held;
};

template <class Blocks, class Scenario>
Held run(Scenario scenario, int steps) {
    Blocks blocks;
    Caller caller(blocks);
    scenario(caller, steps);
    return {caller.peak(), blocks.peak_held()};
}

template <class Scenario>
perf::Cells row(const char* name, Scenario scenario, int steps) {
    const Held spans = run<Spans>(scenario, steps);
    const Held arena = run<ArenaBlocks>(scenario, steps);
    const auto of_use = [](const Held& held) {
        return text(static_cast<double>(held.held) / static_cast<double>(held.in_use));
    };
    return {name, text(static_cast<double>(spans.in_use) / mib_bytes, 0), of_use(spans),
            of_use(arena)};
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 1);
    const perf::Report report(options);
    const int steps = options.quick ? 640 : 6400;
    report.print("Peak of bytes held, of the peak in use: 64 blocks of 128 KiB to 16 MiB",
                 {{std::to_string(steps) + " frees", "in use, MiB", "spans", "arena"},
                  row("all, in reverse order", InReverse{}, steps),
                  row("oldest, then a new one", InOrder{}, steps),
                  row("any, then a new one", AtRandom{}, steps)});
    return report.status();
}
