#pragma once

#include <cstdint>

#include "inspect/history.hpp"

namespace tensorpool::command::export_ {

using inspect::BlockFacts;
using inspect::History;
using trace::Life;
using trace::Recording;

/// Which moment of a recording is written.
enum class At { peak, end };

/// A moment: so many calls have returned.
struct Moment {
    std::uint32_t calls = 0;
    bool has_begun(const Life& life) const noexcept {
        return life.begin == Life::none || life.begin < calls;
    }
    bool has_ended(const Life& life) const noexcept {
        return life.end != Life::none && life.end < calls;
    }
    /// Its owner has freed it; while it is alive, streams have not passed.
    bool is_deferred(const Life& life) const noexcept {
        return life.deferred != Life::none && life.deferred < calls;
    }
    bool is_alive(const Life& life) const noexcept { return has_begun(life) && !has_ended(life); }
};

/// The peak is the first moment of most bytes alive in all processes together.
Moment moment_of(const History& history, At at);

}  // namespace tensorpool::command::export_
