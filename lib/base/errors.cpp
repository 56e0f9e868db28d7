#include <tensorpool/errors.hpp>

#include <cstdio>

#include "base/text.hpp"

namespace tensorpool {

AllocationError::AllocationError(const char* owner, std::size_t asked, std::size_t in_use,
                                 std::size_t capacity, const char* limit,
                                 std::size_t limit_bytes) noexcept
    : asked_(asked), in_use_(in_use) {
    using base::BytesText;
    std::snprintf(text_, sizeof text_,
                  "tensorpool: %.47s: allocate: %zu B (%s) asked with %s in use and %s committed; "
                  "limit met: %.60s (%s)",
                  owner, asked, BytesText(asked).c_str(), BytesText(in_use).c_str(),
                  BytesText(capacity).c_str(), limit, BytesText(limit_bytes).c_str());
}

}  // namespace tensorpool
