#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>

#include <tensorpool/heap_profile.hpp>

#include "leaks/observation.hpp"

namespace tensorpool::command::leaks::testing {

/// A program that allocates at one site. Its allocations are sampled as a pool samples them.
class SimulatedProgram {
public:
    static constexpr std::uint64_t interval = 512 << 10;

    explicit SimulatedProgram(std::uint64_t seed) : random_(seed) {
        profile_.process = 4711;
        profile_.process_name = "train";
        profile_.interval = interval;
        profile_.frames = {{"python:step@/home/me/train.py", 20}};
        ProfileSite& site = profile_.sites.emplace_back();
        site.id = 1;
        site.stack = {0};
    }

    /// Returns a number from 0 to 1.
    double random() { return std::uniform_real_distribution<>()(random_); }
    /// Allocates `bytes` in blocks of `block` bytes.
    void allocate(double bytes, double block) {
        for (double left = bytes; left >= block; left -= block) blocks_.push_back(take(block));
    }
    /// Frees all blocks except the `kept` oldest ones.
    void free_to(std::size_t kept) { blocks_.resize(std::min(blocks_.size(), kept)); }
    /// Frees the oldest blocks.
    void free_oldest(std::size_t count) {
        for (; count > 0 && !blocks_.empty(); --count) blocks_.pop_front();
    }
    std::size_t blocks() const { return blocks_.size(); }

    /// Returns the profile at the end of an iteration.
    HeapProfile profile() {
        double live = 0;
        for (const double weight : blocks_) live += weight;
        profile_.sites[0].live_bytes = static_cast<std::uint64_t>(live);
        profile_.sites[0].allocated_bytes = static_cast<std::uint64_t>(allocated_);
        return profile_;
    }

private:
    /// Returns what a new block adds to the estimate: 0 if it is not sampled.
    double take(double block) {
        const double p = 1 - std::exp(-block / static_cast<double>(interval));
        if (random() >= p) return 0;
        ProfileSite& site = profile_.sites[0];
        ++site.samples;
        site.allocated_blocks += 1 / p;
        allocated_ += block / p;
        return block / p;
    }

    std::mt19937_64 random_;
    HeapProfile profile_;
    std::deque<double> blocks_;
    double allocated_ = 0;
};

/// What a program does in iteration 0, 1, ...
using Iteration = std::function<void(SimulatedProgram&, unsigned)>;

/// Observes 20 iterations of a program after those in `before`.
inline Observation observe(std::uint64_t seed, const Iteration& iteration, unsigned before = 1) {
    SimulatedProgram program(seed);
    Observation observation;
    for (unsigned i = 0; i < before + 20; ++i) {
        iteration(program, i);
        if (i + 1 >= before) observation.add(program.profile(), i);
    }
    return observation;
}

}  // namespace tensorpool::command::leaks::testing
