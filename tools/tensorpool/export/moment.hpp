#pragma once

#include <cstdint>

#include "inspect/history.hpp"

namespace tensorpool::command::export_ {

using inspect::BlockFacts;
using inspect::History;
using trace::Life;
using trace::Recording;

/// The moment of a recording that is exported.
enum class At { peak, end };

/// A moment in a recording, given as the number of calls that have returned.
struct Moment {
    std::uint32_t calls = 0;
    bool has_begun(const Life& life) const noexcept {
        return life.begin == Life::none || life.begin < calls;
    }
    bool has_ended(const Life& life) const noexcept {
        return life.end != Life::none && life.end < calls;
    }
    /// Whether its owner has freed it. Until it ends, streams may still use it.
    bool is_deferred(const Life& life) const noexcept {
        return life.deferred != Life::none && life.deferred < calls;
    }
    bool is_alive(const Life& life) const noexcept { return has_begun(life) && !has_ended(life); }
};

/// Finds a moment. The peak is the first moment at which all processes together have the most bytes
/// alive.
Moment moment_of(const History& history, At at);

}  // namespace tensorpool::command::export_
