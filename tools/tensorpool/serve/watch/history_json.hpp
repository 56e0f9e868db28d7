#pragma once

/// @file
/// Writes the event `history` directly as text. A JSON tree of its numbers would be ten times as
/// large.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "serve/watch/history.hpp"

namespace tensorpool::command::serve {

class HistoryJson {
public:
    /// `start` is the origin of the samples' times, in seconds since 1970. `faults` are written
    /// with each pool.
    HistoryJson(std::uint64_t process, double start, std::vector<ProcessSample> faults);
    void add(std::uint64_t pool, const std::string& name, std::span<const PoolSample> samples);
    /// Returns the text. To be called once, at the end.
    std::string take();

private:
    void add_times(std::span<const PoolSample> samples);
    void add_series(std::size_t series, std::span<const PoolSample> samples);
    void add_faults(std::span<const PoolSample> samples);
    void add_value(bool first, float value);

    std::string text_;
    double start_;
    std::vector<ProcessSample> faults_;
    bool first_ = true;
};

}  // namespace tensorpool::command::serve
