#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "rest/pieces/plane_coder.hpp"
#include "rest/pieces/planes.hpp"

namespace tensorpool::stashing {

/// How the planes of a piece are to be encoded.
struct Efforts {
    std::array<Effort, max_planes> of_plane = {};
    /// The part of the piece's bytes that remains, by the sample.
    double ratio = 1;
};

/// Chooses the efforts for `width` planes of `count` bytes that lie one after another, by a sample
/// of each. Codings that restore slowly are chosen for as many planes as the time of a restore at
/// 1.5 GB/s allows, those that save the most first. REQUIRES: `count` is at least 1.
Efforts choose_efforts(const std::byte* planes, std::size_t count, std::size_t width,
                       void* lz4_state) noexcept;

/// Returns the part that would remain of `width` planes if the bytes of each were coded by their
/// frequencies, by a sample. This takes a fraction of the time of `choose_efforts`.
double estimate_entropy(const std::byte* planes, std::size_t count, std::size_t width) noexcept;

}  // namespace tensorpool::stashing
