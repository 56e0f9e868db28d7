#pragma once

#include "kinds/kind.hpp"

namespace tensorpool::lab {

/// A sample of a kind of blocks that lies in a folder of its own: blocks of whole pages whose
/// content is overwritten with zeros when they are freed, for keys and the like. Requests with an
/// alignment of `alignment` bytes or more get them.
struct WipedKind {
    static constexpr std::size_t alignment = std::size_t{32} << 10;
    /// Its number in the page map, behind the buckets of the third series.
    static constexpr auto number =
        static_cast<pages::PageKind>(2 * pages::kinds_of_series + detail::bucket_count + 1);
};

}  // namespace tensorpool::lab
