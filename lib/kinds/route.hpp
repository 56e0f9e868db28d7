#pragma once

#include <cstddef>

#include "kinds/pool_parts.hpp"

namespace tensorpool::kinds {

/// Whether the caller or the pool touches the fresh pages of a block of whole pages first.
enum class FirstTouch : bool { by_caller, by_pool };

struct Request {
    std::size_t bytes;
    std::size_t alignment;
    FirstTouch first_touch = FirstTouch::by_caller;
};

/// One way in which a request is served. A pool has a list of them, which is fixed when the pool is
/// made, and the first that takes a request serves it.
struct Route {
    /// Whether this route serves the request, which depends on its size and on the scopes of the
    /// calling thread.
    bool (*takes)(const PoolParts& pool, const Request& request) noexcept = nullptr;
    /// Returns a block, or nullptr with the reason in `path.refusal`.
    void* (*allocate)(PoolParts& pool, const Request& request, SlowPath& path) noexcept = nullptr;
    /// Whether the block belongs to another layer, which counts and records it and describes a
    /// refusal.
    bool is_lent = false;
};

class Kind;
/// Adds a kind of pages of another folder, and the route that serves its blocks, which is asked
/// first. Hardened pools have neither. REQUIRES: no pool was made yet, at most four are added, and
/// the number is none of a series of buckets (pages::PageKind).
void add(pages::PageKind number, const Kind& kind, const Route& route) noexcept;

/// Returns the routes of a pool with these checks. The last one takes every request.
const Route* routes_for(Checks checks) noexcept;

}  // namespace tensorpool::kinds
