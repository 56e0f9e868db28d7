#pragma once

#include "pages/address_space.hpp"

namespace tensorpool::pages {

/// Ends the marks of all blocks in use of a pool in these pages, as if each block were freed.
/// REQUIRES: no call of the pool is under way.
void end_marks(const AddressSpace& space, unsigned pool_number, PageRun lent) noexcept;

}  // namespace tensorpool::pages
