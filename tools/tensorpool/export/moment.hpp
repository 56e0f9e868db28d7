#pragma once

#include <cstdint>

#include "formats/trace/history.hpp"

namespace tensorpool::command::export_ {

using trace::BlockFacts;
using trace::History;
using trace::Lifetime;
using trace::Recording;

/// The moment of a recording that is exported.
enum class At { peak, end };

/// A moment in a recording, given as the number of calls that have returned.
struct Moment {
    std::uint32_t calls = 0;
    bool has_begun(const Lifetime& lifetime) const noexcept {
        return lifetime.begin == Lifetime::none || lifetime.begin < calls;
    }
    bool has_ended(const Lifetime& lifetime) const noexcept {
        return lifetime.end != Lifetime::none && lifetime.end < calls;
    }
    /// Whether its owner has freed it. Until it ends, streams may still use it.
    bool is_deferred(const Lifetime& lifetime) const noexcept {
        return lifetime.deferred != Lifetime::none && lifetime.deferred < calls;
    }
    bool is_alive(const Lifetime& lifetime) const noexcept {
        return has_begun(lifetime) && !has_ended(lifetime);
    }
};

/// Finds a moment. The peak is the first moment at which all processes together have the most bytes
/// alive.
Moment moment_of(const History& history, At at);

}  // namespace tensorpool::command::export_
