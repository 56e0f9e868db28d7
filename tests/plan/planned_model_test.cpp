// Runs random programs, which drift at random from the learned sequence, and checks them against a
// map of all bytes in use.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "plan/planned_subjects.hpp"

namespace tensorpool::planned {
namespace {

using testing::ArenaSubject;
using testing::PartsSubject;
using Fault = PartsSubject::Fault;
using Random = std::mt19937;

bool happens(Random& random, double probability) {
    return std::bernoulli_distribution(probability)(random);
}
std::size_t below(Random& random, std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
}

/// A buffer of the program: allocated at its own step, freed before the step `end`.
struct Buffer {
    std::size_t bytes;
    std::size_t alignment;
    std::size_t end;
};

std::vector<Buffer> random_program(Random& random) {
    std::vector<Buffer> program(5 + below(random, 40));
    const std::size_t sizes = 1 + below(random, 12);  // few sizes: one request looks like another
    for (std::size_t step = 0; step < program.size(); ++step) {
        const std::size_t longest = program.size() + 1 - step;
        const std::size_t lifetime = 1 + below(random, happens(random, 0.8) ? 4 : longest);
        program[step] = {.bytes = 1 + 64 * (1 + below(random, sizes)) - below(random, 64),
                         .alignment = happens(random, 0.1) ? std::size_t{256} : std::size_t{64},
                         .end = std::min(step + lifetime, program.size())};
    }
    return program;
}

/// Blocks in use. All bytes of a block are filled with a tag that depends on its number.
class LiveBlocks {
public:
    /// Throws std::runtime_error if the block is misaligned or overlaps another.
    void add(void* p, std::size_t bytes, std::size_t alignment) {
        auto* const begin = static_cast<std::byte*>(p);
        if (reinterpret_cast<std::uintptr_t>(p) % alignment != 0) fail("a block is not aligned");
        const auto above = blocks_.lower_bound(begin);
        if (above != blocks_.end() && above->first < begin + bytes) fail("a block overlaps");
        if (above != blocks_.begin()) {
            const auto under = std::prev(above);
            if (under->first + under->second.bytes > begin) fail("a block overlaps");
        }
        const auto tag = static_cast<unsigned char>(++numbers_);
        std::memset(begin, tag, bytes);
        blocks_.emplace(begin, Block{bytes, tag});
    }
    void remove(void* p) {
        const auto found = blocks_.find(static_cast<std::byte*>(p));
        const Block block = found->second;
        blocks_.erase(found);
        for (std::size_t i = 0; i < block.bytes; ++i) {
            if (static_cast<unsigned char*>(p)[i] != block.tag) fail("a block was written over");
        }
    }

private:
    static void fail(const char* problem) { throw std::runtime_error(problem); }

    struct Block {
        std::size_t bytes;
        unsigned char tag;
    };
    std::map<std::byte*, Block> blocks_;
    unsigned numbers_ = 0;
};

/// Runs the iterations of a random program on one subject; a fraction `drift` of steps is changed.
template <class Subject>
class RandomRun {
public:
    RandomRun(Subject& subject, unsigned seed, double drift)
        : subject_(subject), random_(seed), drift_(drift), program_(random_program(random_)) {}

    /// Runs some iterations, the first of them without drift. Throws std::runtime_error if the
    /// subject hands out memory in use.
    void go(int iterations) {
        for (int i = 0; i < iterations; ++i) iterate(i == 0 ? 0.0 : drift_);
        while (!late_.empty()) free_late();
    }

private:
    void iterate(double drift) {
        subject_.begin_iteration();
        std::vector<void*> held(program_.size());
        for (std::size_t step = 0; step < program_.size(); ++step) {
            free_ending(held, step, drift);
            if (!late_.empty() && happens(random_, 0.2)) free_late();
            if (happens(random_, drift)) late_.push_back(allocate(random_buffer()));
            Buffer buffer = program_[step];
            if (happens(random_, drift)) buffer.bytes = random_buffer().bytes;
            if (!happens(random_, drift)) held[step] = allocate(buffer);
            if (happens(random_, drift * 0.02)) break;
        }
        free_ending(held, program_.size(), drift);
        for (void* const p : held) free(p);
        subject_.end_iteration();
    }
    void free_ending(std::vector<void*>& held, std::size_t step, double drift) {
        for (std::size_t i = 0; i < step; ++i) {
            if (held[i] == nullptr || program_[i].end > step) continue;
            if (happens(random_, drift)) {
                late_.push_back(held[i]);
            } else {
                free(held[i]);
            }
            held[i] = nullptr;
        }
    }
    void free_late() {
        const std::size_t at = below(random_, late_.size());
        free(late_[at]);
        late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    Buffer random_buffer() {
        const Buffer& like = program_[below(random_, program_.size())];
        if (happens(random_, 0.5)) return like;
        return {.bytes = 1 + below(random_, 1000), .alignment = like.alignment, .end = 0};
    }
    void* allocate(const Buffer& buffer) {
        void* const p = subject_.allocate(buffer.bytes, buffer.alignment);
        live_.add(p, buffer.bytes, buffer.alignment);
        return p;
    }
    void free(void* p) {
        if (p == nullptr) return;
        live_.remove(p);
        subject_.deallocate(p);
    }

    Subject& subject_;
    Random random_;
    double drift_;
    std::vector<Buffer> program_;
    LiveBlocks live_;
    std::vector<void*> late_;
};

constexpr double drifts[] = {0.0, 0.01, 0.05, 0.3};

template <class Make>
std::string first_problem(Make make, unsigned seeds) {
    for (unsigned seed = 0; seed < seeds; ++seed) {
        for (const double drift : drifts) {
            auto subject = make();
            try {
                RandomRun(*subject, seed, drift).go(40);
            } catch (const std::runtime_error& problem) {
                return problem.what() + (", seed " + std::to_string(seed));
            }
        }
    }
    return "";
}

TEST(PlannedModel, AnArenaNeverHandsOutMemoryInUse) {
    EXPECT_EQ(first_problem([] { return std::make_unique<ArenaSubject>(); }, 60), "");
}

TEST(PlannedModel, ServesAllRequestsOfAProgramWithoutDrift) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        ArenaSubject subject;
        RandomRun(subject, seed, 0.0).go(10);
        const PlannedArenaStatistics statistics = subject.statistics();
        EXPECT_EQ(statistics.served, 9 * statistics.buffers);
        EXPECT_EQ(statistics.from_pool, statistics.buffers);
        EXPECT_EQ(statistics.in_use_bytes + statistics.pool_in_use_bytes, 0);
    }
}

TEST(PlannedModel, ServesMostRequestsOfAProgramWithLittleDrift) {
    std::uint64_t served = 0;
    std::uint64_t from_pool = 0;
    for (unsigned seed = 0; seed < 50; ++seed) {
        ArenaSubject subject;
        RandomRun(subject, seed, 0.01).go(40);
        served += subject.statistics().served;
        from_pool += subject.statistics().from_pool;
    }
    EXPECT_GT(served, 9 * from_pool);
}

std::string problem_with(Fault fault) {
    return first_problem([&] { return std::make_unique<PartsSubject>(fault); }, 60);
}

// The model must find each of these injected faults.
TEST(PlannedModel, FindsInjectedFaults) {
    EXPECT_EQ(problem_with(Fault::none), "");
    EXPECT_NE(problem_with(Fault::no_predecessors), "");
    EXPECT_NE(problem_with(Fault::one_predecessor), "");
    EXPECT_NE(problem_with(Fault::passed_is_free), "");
}

}  // namespace
}  // namespace tensorpool::planned
