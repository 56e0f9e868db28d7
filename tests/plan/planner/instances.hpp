#pragma once

/// @file
/// Instances to plan, and a checker of plans that compares each pair of buffers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tensorpool/memory_plan.hpp>

namespace planner_tests {

using Lifetimes = std::vector<tensorpool::TensorLifetime>;
using Generator = std::mt19937_64;

/// Returns a description of the first fault of a plan, or an empty string.
inline std::string fault_of(const Lifetimes& lifetimes, const tensorpool::MemoryPlan& plan) {
    if (plan.offsets.size() != lifetimes.size()) return "not one offset for each buffer";
    std::uint64_t top = 0;
    const auto end_of = [&](std::size_t i) { return plan.offsets[i] + lifetimes[i].bytes; };
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
        if (plan.offsets[i] % lifetimes[i].alignment != 0) return std::to_string(i) + " misaligned";
        if (end_of(i) < plan.offsets[i]) return std::to_string(i) + " wraps around";
        top = std::max(top, end_of(i));
        for (std::size_t j = 0; j < i; ++j) {
            const bool at_once =
                lifetimes[i].begin < lifetimes[j].end && lifetimes[j].begin < lifetimes[i].end;
            const bool overlap = plan.offsets[i] < end_of(j) && plan.offsets[j] < end_of(i) &&
                                 lifetimes[i].bytes != 0 && lifetimes[j].bytes != 0;
            if (at_once && overlap) return std::to_string(j) + " overlaps " + std::to_string(i);
        }
    }
    return top == plan.peak_bytes ? "" : "the peak is not the highest end";
}

/// Returns the maximum bytes alive at once; it is reached at the beginning of some buffer.
inline std::uint64_t max_alive(const Lifetimes& lifetimes) {
    std::uint64_t max = 0;
    for (const auto& at : lifetimes) {
        std::uint64_t bytes = 0;
        for (const auto& one : lifetimes) {
            if (one.begin <= at.begin && at.begin < one.end) bytes += one.bytes;
        }
        max = std::max(max, bytes);
    }
    return max;
}

inline std::int64_t draw(Generator& generator, std::int64_t min, std::int64_t max) {
    return std::uniform_int_distribution<std::int64_t>(min, max)(generator);
}

/// Cuts a rectangle of time and offsets in two, recursively. The pieces can be packed into
/// `whole.bytes` and no less, because they fill all bytes at all times.
inline void cut(Generator& generator, tensorpool::TensorLifetime whole, int cuts,
                Lifetimes& pieces) {
    const bool across = draw(generator, 0, 1) == 0;
    const std::int64_t length =
        across ? static_cast<std::int64_t>(whole.bytes) / 16 : whole.end - whole.begin;
    if (cuts == 0 || length < 2) {
        pieces.push_back(whole);
        return;
    }
    tensorpool::TensorLifetime first = whole;
    const std::int64_t at = draw(generator, 1, length - 1);
    if (across) {
        first.bytes = static_cast<std::uint64_t>(at) * 16;
        whole.bytes -= first.bytes;
    } else {
        first.end = whole.begin = first.begin + at;
    }
    cut(generator, first, cuts - 1, pieces);
    cut(generator, whole, cuts - 1, pieces);
}

/// Returns the pieces of a cut rectangle in random order. All sizes are multiples of 16.
inline Lifetimes cut_rectangle(Generator& generator, std::uint64_t bytes, std::int64_t time,
                               int cuts) {
    Lifetimes pieces;
    cut(generator, {.begin = 0, .end = time, .bytes = bytes}, cuts, pieces);
    std::shuffle(pieces.begin(), pieces.end(), generator);
    return pieces;
}

inline Lifetimes random_lifetimes(Generator& generator, std::size_t count, std::int64_t time,
                                  std::uint64_t max_bytes, int max_alignment_log2 = 0) {
    Lifetimes lifetimes(count);
    for (auto& one : lifetimes) {
        one.begin = draw(generator, 0, time - 1);
        one.end = draw(generator, one.begin + 1, time);
        one.bytes =
            static_cast<std::uint64_t>(draw(generator, 1, static_cast<std::int64_t>(max_bytes)));
        one.alignment = std::uint64_t{1} << draw(generator, 0, max_alignment_log2);
    }
    return lifetimes;
}

}  // namespace planner_tests
